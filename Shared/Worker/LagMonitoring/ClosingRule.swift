/// When a lag is over, if all goes on as it does.
package enum ClosingRule {
    /// What is slower than this gets nowhere.
    private static let perSecondMin = 0.001

    /// - Parameters:
    ///   - lag: Messages.
    ///   - comes: Messages a second that are written; `nil` when it is not known.
    ///   - goes: Messages a second that are finished.
    /// - Returns: In seconds; `nil` when it grows, or nothing is known.
    package static func seconds(lag: Int64, comes: Double?, goes: Double?) -> Double? {
        if lag == 0 { return 0 }
        guard let comes, let goes, goes - comes >= perSecondMin else { return nil }
        return Double(lag) / (goes - comes)
    }
}
