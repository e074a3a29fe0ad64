import Essentials
import Foundation
import HTTPServer
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// An emulator of a back end, served over HTTP: the vendor's interface, and control routes below `/sandbox/`.
protocol Emulator: HTTPResponder where Context == EdgeContext {
    associatedtype State: EmulatorState

    var system: EmulatedSystem<State> { get }
    /// Further handlers of each connection.
    var handlers: [any RemovableChannelHandler] { get }

    /// Responds to a request to the vendor's interface.
    ///
    /// - Throws: ``EmulatorRefusal`` for a request that the back end refuses.
    func serve(_ request: Request, _ context: EdgeContext) async throws -> Response

    /// Executes a control request that only this emulator has; returns `nil` for others.
    func control(_ request: Request) async throws -> Response?

    /// An error in the form of the vendor.
    static func failure(_ status: HTTPResponse.Status, _ message: String) -> Response
}

/// A back end's refusal of a request.
protocol EmulatorRefusal: Error {
    var response: Response { get }
}

extension Emulator {
    var handlers: [any RemovableChannelHandler] { [] }

    /// Serves until the task is cancelled or the process receives a signal.
    ///
    /// - Parameters:
    ///   - port: 0 for a free port.
    ///   - onRunning: Called with the port when requests are accepted.
    func run(
        host: String = "127.0.0.1", port: Int = 0, onRunning: @escaping @Sendable (Int) async -> Void = { _ in }
    ) async throws {
        let logger = Logger(label: "sandbox") { _ in SwiftLogNoOpLogHandler() }
        let application = Application(
            responder: self,
            server: .retainedHTTP1(configuration: .init(additionalChannelHandlers: handlers)),
            configuration: .init(address: .hostname(host, port: port)),
            onServerRunning: { await onRunning($0.localAddress?.port ?? 0) },
            logger: logger)
        try await application.run()
    }

    func respond(to request: Request, context: EdgeContext) async throws -> Response {
        if request.uri.path.hasPrefix("/sandbox/") { return try await respondToControl(request) }
        do {
            return try await serve(request, context)
        } catch let refusal as any EmulatorRefusal {
            system.count("refused")
            return refusal.response
        }
    }

    static var notFound: Response { failure(.notFound, "The resource was not found.") }

    // MARK: Faults

    /// Waits for the latency of a call, and returns the response of an injected fault.
    func injectedFailure(of request: Request) async throws -> Response? {
        let fault = system.withState { $0.injector.drawCall(isRead: request.method == .get) }
        if fault.milliseconds > 0 { try await Task.sleep(for: .milliseconds(fault.milliseconds)) }
        guard let status = fault.status else { return nil }
        guard status == 429 else { return Self.unavailable }
        var response = Self.failure(.tooManyRequests, "Too many requests.")
        response.headers[.retryAfter] = String(system.switches.faults.retryAfterSeconds)
        return response
    }

    /// Executes a write with its injected fault.
    ///
    /// - Parameter write: Executes the write, and returns its response; a trial only checks. It throws the errors of
    ///   the request.
    func write(
        _ context: EdgeContext, _ write: @escaping @Sendable (_ isTrial: Bool) throws -> Response
    ) async throws -> Response {
        switch system.withState({ $0.injector.drawWrite() }) {
        case .none:
            return try write(false)
        case .lostAfterWrite:
            _ = try write(false)
            return await dropResponse("lostAfterWrite", context)
        case .failedAfterWrite:
            _ = try write(false)
            system.count("failedAfterWrite")
            return Self.failure(.internalServerError, "An internal error has occurred.")
        case .slowAfterWrite(let milliseconds):
            let response = try write(false)
            system.count("slowAfterWrite")
            try await Task.sleep(for: .milliseconds(milliseconds))
            return response
        case .late(let milliseconds, let isAnswered):
            _ = try write(true)
            commit(after: .milliseconds(milliseconds), write)
            guard isAnswered else { return await dropResponse("lateCommit", context) }
            system.count("lateCommit")
            return Self.unavailable
        }
    }

    private static var unavailable: Response {
        failure(.serviceUnavailable, "The service is temporarily unavailable.")
    }

    private func commit(after time: Duration, _ write: @escaping @Sendable (_ isTrial: Bool) throws -> Response) {
        system.withState { $0.injector.lateCommitsWaiting += 1 }
        Task { [system] in
            repeat {
                try await Task.sleep(for: max(time, .milliseconds(1)))
            } while system.switches.faults.holdsLateCommits
            // A write that has become invalid meanwhile is dropped.
            _ = try? write(false)
            system.withState { $0.injector.lateCommitsWaiting -= 1 }
        }
    }

    /// Closes the connection; the returned response is not sent.
    private func dropResponse(_ kind: String, _ context: EdgeContext) async -> Response {
        system.count(kind)
        try? await context.channel.close().get()
        return Response(status: .internalServerError)
    }
}

/// The control routes of all emulators, which need no credentials.
extension Emulator {
    func respondToControl(_ request: Request) async throws -> Response {
        switch (request.method, request.uri.path) {
        case (.get, "/sandbox/switches"): return .json(.ok, try system.switches.json)
        case (.post, "/sandbox/switches"):
            return try await respond(toBodyOf: request) { json in
                try system.withState { try $0.injector.change(by: json) }.json
            }
        case (.get, "/sandbox/stats"):
            let counts = system.withState { state in
                state.injector.counts.merging([
                    "records": state.recordCount, "lateCommitsWaiting": state.injector.lateCommitsWaiting,
                ]) { $1 }
            }
            return .json(.ok, .object(counts.map { ($0.key, .number($0.value)) }))
        case (.post, "/sandbox/organisation"):
            return try await change(request) { (organisation: State.Organisation) in
                system.load(organisation)
                return ["loaded": true]
            }
        default: return try await control(request) ?? Self.notFound
        }
    }

    /// Makes the change that a body of JSON describes; an invalid body gets 400.
    func change<Body: Decodable>(_ request: Request, _ apply: (Body) throws -> JSON) async throws -> Response {
        try await respond(toBodyOf: request) { try apply(JSONDecoder().decode(Body.self, from: $0)) }
    }

    private func respond(toBodyOf request: Request, _ apply: (_ json: Data) throws -> JSON) async throws -> Response {
        let data = try await request.data()
        do {
            return .json(.ok, try apply(data))
        } catch {
            return .json(.badRequest, ["problem": .string("\(error)")])
        }
    }

    /// One line of JSON per row.
    func lines<Row>(_ rows: [Row], _ json: (Row) -> JSON) -> Response {
        var bytes: [UInt8] = []
        for row in rows {
            json(row).write(to: &bytes)
            bytes.append(UInt8(ascii: "\n"))
        }
        return Response(
            status: .ok, headers: [.contentType: "application/x-ndjson"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}

extension Request {
    private static var bodyBytesMax: Int { 64 * 1024 * 1024 }

    func data() async throws -> Data {
        let bytes = try await body.collect(upTo: Self.bodyBytesMax)
        return Data(bytes.readableBytesView)
    }

    /// The parameters of the query that have a value; none if the query cannot be decoded.
    var parameters: [FormFields.Item] { (FormFields(uri.query ?? "")?.items ?? []).filter { !$0.value.isEmpty } }

    /// The number after which the rows of a listing begin.
    var after: Int { max(0, uri.queryParameters["after"].flatMap { Int($0) } ?? 0) }
}

extension Response {
    static func json(_ status: HTTPResponse.Status, _ json: JSON) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.bytes)))
    }
}
