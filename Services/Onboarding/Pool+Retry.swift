import Essentials
import Postgres

extension Pool {
    /// Runs an idempotent transaction and retries with backoff while the database is unavailable, for at most
    /// `retryMax`.
    func runWithRetry<Success: Sendable>(
        _ retryMax: Duration, _ body: @escaping @Sendable (inout Connection) throws -> Success
    ) async throws -> Success {
        let deadline = ContinuousClock.now + retryMax
        var backoff = Backoff(first: .milliseconds(100), waitMax: .seconds(1))
        while true {
            do {
                return try await run(body)
            } catch let error as PostgresError where error.isRetriable && .now < deadline {
                try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
            }
        }
    }
}
