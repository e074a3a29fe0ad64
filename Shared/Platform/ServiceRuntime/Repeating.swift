import Essentials
package import Logging
import ServiceLifecycle

/// A task that runs periodically until the process stops.
package struct Repeating: Service {
    private let name: String
    private let interval: Duration
    private let health: Health?
    private let logger: Logger
    private let isFinal: @Sendable (any Error) -> Bool
    private let body: @Sendable () async throws -> Void

    private static let backoff = Backoff(first: .milliseconds(50), waitMax: .seconds(2))

    /// - Parameters:
    ///   - name: The name in logs and readiness.
    ///   - interval: The time from the end of a run to the start of the next; after a failure, backoff applies.
    ///   - isFinal: Whether an error stops the process.
    ///   - body: One run. Its errors are logged, and the process is not ready until a run succeeds.
    package init(
        _ name: String, every interval: Duration, health: Health?, logger: Logger,
        isFinal: @escaping @Sendable (any Error) -> Bool = { _ in false },
        _ body: @escaping @Sendable () async throws -> Void
    ) {
        self.name = name
        self.interval = interval
        self.health = health
        self.logger = logger
        self.isFinal = isFinal
        self.body = body
    }

    package func run() async throws {
        try await cancelWhenGracefulShutdown {
            var backoff = Self.backoff
            while !Task.isCancelled {
                do {
                    try await body()
                    backoff.succeeded()
                    health?.ready(true, source: name)
                    try? await Task.sleep(for: interval)
                } catch {
                    if isFinal(error) { throw error }
                    logger.warning(
                        "periodic task failed, will retry", metadata: ["task": "\(name)", "error": "\(error)"])
                    health?.ready(false, source: name, reason: "the last run failed; see the log")
                    try? await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
                }
            }
        }
    }
}
