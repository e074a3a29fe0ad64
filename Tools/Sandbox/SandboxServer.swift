import ArgumentParser
import HTTPServer
import Hummingbird
import Logging
import NIOCore
import ServiceRuntime

/// The address of an emulator, and the file that keeps its state.
struct EmulatorConfiguration: Sendable {
    var host = "127.0.0.1"
    /// 0: a free port.
    var port = 0
    /// `nil`: the state is in memory only.
    var statePath: String?
}

/// An emulator of a back end, served over HTTP.
protocol EmulatorService: Sendable {
    associatedtype Responder: HTTPResponder where Responder.Context == ConnectionContext

    var address: EmulatorConfiguration { get }
    var responder: Responder { get }
    /// Further handlers of each connection.
    var handlers: [any RemovableChannelHandler] { get }
}

extension EmulatorService {
    var handlers: [any RemovableChannelHandler] { [] }

    /// Serves until the task is cancelled or the process receives a signal.
    ///
    /// - Parameter onRunning: Called with the port when requests are accepted.
    func run(onRunning: @escaping @Sendable (Int) async -> Void = { _ in }) async throws {
        let logger = Logger(label: "sandbox") { _ in SwiftLogNoOpLogHandler() }
        let application = Application(
            responder: responder,
            server: .retainedHTTP1(configuration: .init(additionalChannelHandlers: handlers)),
            configuration: .init(address: .hostname(address.host, port: address.port)),
            onServerRunning: { await onRunning($0.localAddress?.port ?? 0) },
            logger: logger)
        try await application.run()
    }
}
