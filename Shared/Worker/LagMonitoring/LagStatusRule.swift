/// Burrow's evaluation rules.
package enum LagStatusRule {
    /// - Parameters:
    ///   - commits: The latest samples, oldest first.
    ///   - recentEnds: Recent end offsets of the partition, in any order.
    ///   - lag: Current distance from the end.
    ///   - now: In milliseconds, on the clock of the samples.
    package static func status(
        commits: [CommitSample], recentEnds: some Sequence<Int64>, lag: Int64, now: Int64
    ) -> LagStatus {
        guard lag > 0, let first = commits.first, let last = commits.last else { return .ok }
        // No sample for longer than the samples span, except if a message has only just arrived.
        let isSilent = now - last.milliseconds > last.milliseconds - first.milliseconds
        if isSilent, !recentEnds.contains(where: { $0 <= last.offset }) { return .stop }
        // Lag was zero recently.
        if commits.contains(where: { $0.lag == 0 }) { return .ok }
        let steps = zip(commits, commits.dropFirst())
        if steps.contains(where: { $1.offset < $0.offset }) { return .rewind }
        if steps.allSatisfy({ $0.offset == $1.offset }) { return .stall }
        let lags = commits.compactMap(\.lag)
        return zip(lags, lags.dropFirst()).contains { $1 < $0 } ? .ok : .warn
    }
}
