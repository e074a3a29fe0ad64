extension DemoRun {
    /// Minimum time of retries, even after the deadline.
    private static let graceMax = Duration.seconds(60)

    /// Retries until the deadline; after it, for a short time.
    func trying<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
        try await retrying(until: max(deadline, .now + Self.graceMax), body)
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
