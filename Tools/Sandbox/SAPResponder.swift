import FoundationEssentials
import HTTPTypes
import Hummingbird
import NIOCore

/// Handles all requests to the SAP emulator. (A router cannot: OData keys are part of the last path segment.)
struct SAPResponder: HTTPResponder {
    let system: SAPSystem
    let sessions: SAPSessions
    /// The `Authorization` that is accepted.
    let credentials: String

    func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        if request.uri.path.hasPrefix("/sandbox/") { return try await control(request) }
        system.count("requests")
        guard request.headers[.authorization] == credentials else {
            system.count("unauthorized")
            var response = Response.json(.unauthorized, SAPEntities.error(["Logon failed"]))
            response.headers[.wwwAuthenticate] = "Basic realm=\"SAP NetWeaver Application Server\""
            return response
        }
        let failure = try await system.failure(
            of: request, unavailable: .unavailable,
            tooManyRequests: .json(.tooManyRequests, SAPEntities.error(["Too many requests"])))
        if let failure { return failure }
        var response = try await serve(request, context)
        addToken(to: &response, for: request)
        return response
    }

    private func serve(_ request: Request, _ context: ConnectionContext) async throws -> Response {
        guard let path = request.uri.path.removingURLPercentEncoding() else { return .notFound }
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
            return try await write(request, context)
        default:
            return .json(.methodNotAllowed, SAPEntities.error(["Method not allowed"]))
        }
    }

    // MARK: Sessions

    private func isTokenRight(_ request: Request) -> Bool {
        guard let session = session(of: request), let token = sessions.token(of: session) else { return false }
        return request.headers[.csrfToken] == token
    }

    private func session(of request: Request) -> String? {
        guard let cookies = request.headers[.cookie] else { return nil }
        for cookie in cookies.split(separator: ";") {
            let parts = cookie.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            if parts.count == 2, parts[0] == SAPSessions.cookie { return String(parts[1]) }
        }
        return nil
    }

    private func addToken(to response: inout Response, for request: Request) {
        guard request.method == .get, request.headers[.csrfToken]?.lowercased() == "fetch" else { return }
        system.count("tokenFetches")
        if let session = session(of: request), let token = sessions.token(of: session) {
            response.headers[.csrfToken] = token
            return
        }
        let (session, token) = sessions.start()
        response.headers[.csrfToken] = token
        response.headers[.setCookie] = "\(SAPSessions.cookie)=\(session); path=/; HttpOnly"
    }

    // MARK: Writing

    private func write(_ request: Request, _ context: ConnectionContext) async throws -> Response {
        let body = try await request.body.collect(upTo: SandboxControl.bodyBytesMax)
        guard let entry = try? JSONDecoder().decode(SAPEntryRequest.self, from: Data(body.readableBytesView)) else {
            return .json(.badRequest, SAPEntities.error(["Error while parsing the request body"]))
        }
        guard let operation = entry.TimeSheetOperation, !operation.isEmpty else {
            system.count("withoutOperation")
            return .json(.created, .object([("d", .object(SAPEntities.echo(entry)))]))
        }
        system.count(operation == "C" ? "creates" : operation == "U" ? "updates" : "deletes")
        do {
            if operation != "D", system.drawValidation() {
                throw SAPTimeSheetRules.Refusal(messages: ["The entry was refused by a check of the customer's own"])
            }
            let write = FaultyWrite(
                system: system, context: context, unavailable: .unavailable,
                failed: .json(.internalServerError, SAPEntities.error(["An internal error has occurred"])))
            return try await write.perform { [system] isTrial in
                let record = try system.apply(entry, operation: operation, isTrial: isTrial)
                return .json(
                    .created, .object([("d", .object(SAPEntities.timeSheetEntry(record, operation: operation)))]))
            }
        } catch let refusal as SAPTimeSheetRules.Refusal {
            system.count("refused")
            return .json(.badRequest, SAPEntities.error(refusal.messages))
        }
    }
}

extension HTTPField.Name {
    static let csrfToken = csrfTokenName()

    private static func csrfTokenName() -> HTTPField.Name {
        guard let name = HTTPField.Name("x-csrf-token") else { preconditionFailure("a valid name") }
        return name
    }
}

extension Response {
    static var unavailable: Response {
        .json(.serviceUnavailable, SAPEntities.error(["Service is temporarily unavailable"]))
    }

    static var notFound: Response {
        .json(.notFound, SAPEntities.error(["Resource not found"]))
    }
}
