import Essentials
import Postgres

extension Pool {
    /// Runs what may be repeated, when what came before may not: a database that is away for a moment is waited for.
    func runPatiently<Success: Sendable>(
        _ patienceMax: Duration, _ body: @escaping @Sendable (inout Connection) throws -> Success
    ) async throws -> Success {
        let deadline = ContinuousClock.now + patienceMax
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
