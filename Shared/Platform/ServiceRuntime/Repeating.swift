import Essentials
package import Logging
import ServiceLifecycle

/// Work that is done again and again until the process stops.
package struct Repeating: Service {
    private let name: String
    private let interval: Duration
    private let rest: Int
    private let health: Health?
    private let logger: Logger
    private let isFinal: @Sendable (any Error) -> Bool
    private let body: @Sendable () async throws -> Void

    private static let backoff = Backoff(first: .milliseconds(50), waitMax: .seconds(2))

    /// - Parameters:
    ///   - name: For the log, and of what makes the process ready.
    ///   - interval: From the end of one round to the beginning of the next; longer after one that failed.
    ///   - rest: A rest has at least so many times the length of its round: what rounds cost is bounded.
    ///   - isFinal: Whether an error stops the process.
    ///   - body: One round. What it throws is logged, and the process is not ready until a round works again.
    package init(
        _ name: String, every interval: Duration, resting rest: Int = 0, health: Health?, logger: Logger,
        isFinal: @escaping @Sendable (any Error) -> Bool = { _ in false },
        _ body: @escaping @Sendable () async throws -> Void
    ) {
        self.name = name
        self.interval = interval
        self.rest = rest
        self.health = health
        self.logger = logger
        self.isFinal = isFinal
        self.body = body
    }

    package func run() async throws {
        try await cancelWhenGracefulShutdown {
            var backoff = Self.backoff
            while !Task.isCancelled {
                let start = ContinuousClock.now
                do {
                    try await body()
                    backoff.succeeded()
                    health?.ready(true, source: name)
                    try? await Task.sleep(for: max(interval, (ContinuousClock.now - start) * rest))
                } catch {
                    if isFinal(error) { throw error }
                    logger.warning("\(name) failed; it is tried again", metadata: ["error": "\(error)"])
                    health?.ready(false, source: name, reason: "the last round failed; the log says why")
                    try? await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
                }
            }
        }
    }
}
