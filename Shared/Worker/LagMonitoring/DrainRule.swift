/// Time until lag is zero at the current rates.
package enum DrainRule {
    /// Minimum decrease of the lag, in messages per second.
    private static let perSecondMin = 0.001

    /// - Parameters:
    ///   - lag: Number of messages.
    ///   - inPerSecond: Messages per second that are written; `nil` if unknown.
    ///   - outPerSecond: Messages per second that are consumed.
    /// - Returns: In seconds; `nil` while lag grows, or if a rate is unknown.
    package static func seconds(lag: Int64, inPerSecond: Double?, outPerSecond: Double?) -> Double? {
        if lag == 0 { return 0 }
        guard let inPerSecond, let outPerSecond, outPerSecond - inPerSecond >= perSecondMin else { return nil }
        return Double(lag) / (outPerSecond - inPerSecond)
    }
}
