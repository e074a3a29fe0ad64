/// Polls until a condition is met.
///
/// - Parameter condition: A description for the error, such as "all devices are connected".
/// - Throws: `ClusterFailure` if the condition is not met within the time.
package func waitUntil(
    _ condition: String, within: Duration, interval: Duration = .milliseconds(100),
    _ isMet: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + within
    while try await !isMet() {
        guard .now < deadline else { throw ClusterFailure("timeout after \(within) waiting until \(condition)") }
        try await Task.sleep(for: interval)
    }
}
