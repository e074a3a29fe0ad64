/// Burrow's rules, as its evaluator has them.
package enum LagStatusRule {
    /// - Parameters:
    ///   - commits: The latest, oldest first.
    ///   - recentEnds: Where the partition ended lately, in any order.
    ///   - lag: How far the group is from the end now.
    ///   - now: In the same milliseconds as the commits' times.
    package static func status(
        commits: [CommitSeen], recentEnds: some Sequence<Int64>, lag: Int64, now: Int64
    ) -> LagStatus {
        guard lag > 0, let first = commits.first, let last = commits.last else { return .ok }
        // No sign of life for longer than those that there are took, but of a message that came just now.
        let isSilent = now - last.milliseconds > last.milliseconds - first.milliseconds
        if isSilent, !recentEnds.contains(where: { $0 <= last.offset }) { return .stop }
        // It was at the end lately.
        if commits.contains(where: { $0.lag == 0 }) { return .ok }
        let steps = zip(commits, commits.dropFirst())
        if steps.contains(where: { $1.offset < $0.offset }) { return .rewind }
        if steps.allSatisfy({ $0.offset == $1.offset }) { return .stall }
        let lags = commits.compactMap(\.lag)
        return zip(lags, lags.dropFirst()).contains { $1 < $0 } ? .ok : .warn
    }
}
