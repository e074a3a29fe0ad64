import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// An emulator of SAP S/4HANA: time sheets, projects and business partners, after the documented behaviour.
///
/// It has no router, since OData keys are part of the last path segment.
struct SAPEmulator: Emulator {
    let system: SAPSystem
    /// The `Authorization` that is accepted.
    private let credentials: String

    /// - Parameter state: The file that keeps the state over a restart; `nil` keeps it in memory only.
    init(state: String? = nil, user: String = "FIELDPOST", password: String = "sandbox") throws {
        system = try SAPSystem(journalPath: state)
        credentials = "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    func serve(_ request: Request, _ context: ConnectionContext) async throws -> Response {
        system.count("requests")
        guard request.headers[.authorization] == credentials else {
            system.count("unauthorized")
            var response = Self.failure(.unauthorized, "Logon failed")
            response.headers[.wwwAuthenticate] = "Basic realm=\"SAP NetWeaver Application Server\""
            return response
        }
        if let failure = try await injectedFailure(of: request) { return failure }
        var response = try await authorized(request, context)
        addToken(to: &response, for: request)
        return response
    }

    static func failure(_ status: HTTPResponse.Status, _ message: String) -> Response {
        .json(status, SAPEntities.error([message]))
    }

    private func authorized(_ request: Request, _ context: ConnectionContext) async throws -> Response {
        guard let path = request.uri.path.removingPercentEncoding else { return Self.notFound }
        switch request.method {
        case .get, .head:
            return read(path, request)
        case .post where path == SAPPath.timeSheet + "/TimeSheetEntryCollection":
            guard isTokenRight(request) else {
                system.count("csrfRefused")
                return Response(
                    status: .forbidden, headers: [.csrfToken: "Required", .contentType: "text/plain"],
                    body: ResponseBody(byteBuffer: ByteBuffer(string: "CSRF token validation failed")))
            }
            return try await post(try await request.data(), context)
        default:
            return Self.failure(.methodNotAllowed, "Method not allowed")
        }
    }

    // MARK: Sessions

    private func isTokenRight(_ request: Request) -> Bool {
        guard let token = token(of: request) else { return false }
        return request.headers[.csrfToken] == token
    }

    /// The token of the session that the request's cookie names.
    private func token(of request: Request) -> String? {
        for cookie in (request.headers[.cookie] ?? "").split(separator: ";") {
            let parts = cookie.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0] == SAPSessions.cookie else { continue }
            return system.withState { $0.sessions[String(parts[1])] }
        }
        return nil
    }

    private func addToken(to response: inout Response, for request: Request) {
        guard request.method == .get, request.headers[.csrfToken]?.lowercased() == "fetch" else { return }
        system.count("tokenFetches")
        if let token = token(of: request) {
            response.headers[.csrfToken] = token
            return
        }
        let (session, token) = system.withState { $0.sessions.start() }
        response.headers[.csrfToken] = token
        response.headers[.setCookie] = "\(SAPSessions.cookie)=\(session); path=/; HttpOnly"
    }

    // MARK: Writing

    private func post(_ body: Data, _ context: ConnectionContext) async throws -> Response {
        guard let entry = try? JSONDecoder().decode(SAPEntryRequest.self, from: body) else {
            return Self.failure(.badRequest, "Error while parsing the request body")
        }
        guard let operation = entry.TimeSheetOperation, !operation.isEmpty else {
            system.count("withoutOperation")
            return .json(.created, ["d": SAPEntities.echo(entry)])
        }
        system.count(operation == "C" ? "creates" : operation == "U" ? "updates" : "deletes")
        return try await write(context) { [system] isTrial in
            let record = try system.withState { try $0.execute(entry, operation: operation, isTrial: isTrial) }
            return .json(.created, ["d": SAPEntities.timeSheetEntry(record, operation: operation)])
        }
    }
}

extension SAPTimeSheetRules.Refusal: EmulatorRefusal {
    var response: Response { .json(.badRequest, SAPEntities.error(messages)) }
}

extension HTTPField.Name {
    static let csrfToken = custom("x-csrf-token")

    static func custom(_ text: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(text) else { preconditionFailure("\(text) is no name of a header") }
        return name
    }
}
