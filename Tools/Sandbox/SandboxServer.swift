import HTTPServer
import Hummingbird
import Logging
import NIOCore
import ServiceRuntime

/// How a stand-in is served over HTTP.
struct SandboxServer<Responder: HTTPResponder>: Sendable where Responder.Context == ConnectionContext {
    let responder: Responder
    let host: String
    /// 0 takes a free one.
    let port: Int
    /// What each connection passes besides.
    var handlers: @Sendable () -> [any RemovableChannelHandler] = { [] }

    /// Serves until the task is cancelled or the process is told to stop.
    ///
    /// - Parameter onRunning: Called with the port once requests are answered.
    func run(onRunning: @escaping @Sendable (Int) async -> Void) async throws {
        // It says nothing, and prepares nothing to be said of each request.
        let logger = Logger(label: "sandbox") { _ in SwiftLogNoOpLogHandler() }
        let application = Application(
            responder: responder,
            server: .heldHTTP1(configuration: .init(additionalChannelHandlers: handlers())),
            configuration: .init(address: .hostname(host, port: port)),
            onServerRunning: { await onRunning($0.localAddress?.port ?? 0) },
            logger: logger)
        try await application.run()
    }
}
