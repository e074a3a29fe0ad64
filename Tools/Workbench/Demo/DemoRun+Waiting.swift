import Essentials
import HTTPClient
import Postgres

extension DemoRun {
    /// How long something may be away when the deadline is near, or has passed.
    private static let graceMax = Duration.seconds(60)

    /// Does it again while something on the way is away.
    ///
    /// - Throws: The last failure, once the time is up; what comes after the deadline has a little time of its own.
    func trying<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
        let end = max(deadline, ContinuousClock.now + Self.graceMax)
        var backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(3))
        while true {
            do { return try await body() } catch {
                guard Self.mayPass(error), ContinuousClock.now < end else { throw error }
                try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
            }
        }
    }

    static func mayPass(_ error: any Error) -> Bool {
        if let error = error as? PostgresError { return error.isRetriable }
        if let refusal = error as? GatewayClient.Refusal { return refusal.status == 401 || refusal.status >= 429 }
        return error is HTTPError
    }

    /// - Returns: `nil` when the deadline came first; `body` was cancelled then.
    func beforeDeadline<Success: Sendable>(
        _ body: @escaping @Sendable () async throws -> Success
    ) async throws -> Success? {
        let deadline = deadline
        return try await withThrowingTaskGroup(of: Success?.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await body() }
            group.addTask {
                try await Task.sleep(until: deadline, clock: .continuous)
                return nil
            }
            return try await group.next() ?? nil
        }
    }
}
