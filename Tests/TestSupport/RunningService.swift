/// Runs a service in this process while `body` runs.
///
/// - Parameter run: Serves until its task is cancelled; reports the port when it accepts requests.
package func withService(
    _ run: @escaping @Sendable (_ onRunning: @escaping @Sendable (Int) async -> Void) async throws -> Void,
    _ body: (_ port: Int) async throws -> Void
) async throws {
    let (ports, port) = AsyncStream.makeStream(of: Int.self)
    let running = Task {
        defer { port.finish() }
        try await run { port.yield($0) }
    }
    defer { running.cancel() }
    guard let first = await ports.first(where: { _ in true }) else { return try await running.value }
    try await body(first)
    running.cancel()
    _ = try? await running.value
}
