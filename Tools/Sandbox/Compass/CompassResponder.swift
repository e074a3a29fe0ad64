import FoundationEssentials
import HTTPTypes
import Hummingbird

/// Handles all requests to the Compass emulator.
struct CompassResponder: HTTPResponder {
    let system: CompassSystem
    let repository: String
    let database: String

    static let root = "/ccmweb/rest"

    func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        if request.uri.path.hasPrefix("/sandbox/") { return try await control(request) }
        let proxyStatus = system.switches.proxyStatus
        if proxyStatus > 0 { return .proxy(proxyStatus) }
        system.count("requests")
        let failure = try await system.failure(
            of: request, unavailable: .compassUnavailable,
            tooManyRequests: .compass(.tooManyRequests, "Too many requests."))
        if let failure { return failure }
        let words = request.uri.path.split(separator: "/", omittingEmptySubsequences: true)
            .compactMap { String($0).removingURLPercentEncoding() }
        guard words.count > 2, words[0] == "ccmweb", words[1] == "rest" else { return .compassNotFound }
        return try await serve(Array(words.dropFirst(2)), request, context)
    }

    /// - Parameter components: The path's components below the root.
    private func serve(
        _ components: [String], _ request: Request, _ context: ConnectionContext
    ) async throws -> Response {
        if components == ["repos"], request.method == .get { return repositories(request) }
        if components == ["authenticate"], request.method == .post { return try await logIn(request) }
        let authorization = request.headers[.authorization] ?? ""
        guard let user = system.user(authorization) else {
            system.count("unauthorized")
            return .compass(.unauthorized, "The token is missing, expired or invalid.")
        }
        if components == ["authenticate", "logoff"], request.method == .post {
            system.count("logoffs")
            system.logOff(authorization)
            return Response(status: .noContent)
        }
        guard components.count >= 4, components[0] == "repos", components[2] == "databases" else {
            return .compassNotFound
        }
        guard components[1] == repository, components[3] == database else {
            return .compass(.notFound, "The database \(components[3]) was not found.")
        }
        let call = CompassCall(request: request, context: context, user: user, words: Array(components.dropFirst(4)))
        do {
            return try await serve(call)
        } catch let refusal as CompassRules.Refusal {
            system.count("refused")
            return .compass(refusal)
        }
    }

    private func serve(_ call: CompassCall) async throws -> Response {
        switch call.words.first {
        case nil where call.method == .get: return databaseInfo()
        case "workspace": return try await workspace(call)
        case "records": return try await records(call)
        default: return .compassNotFound
        }
    }

    private func repositories(_ request: Request) -> Response {
        system.count("repositories")
        var fields: [(String, JSONText)] = [("name", .string(repository))]
        if request.uri.queryParameters["getDbs"].map(String.init) == "true" {
            fields.append(("databaseNames", .array([.string(database)])))
        }
        return .json(.ok, .array([.object(fields)]))
    }

    private func logIn(_ request: Request) async throws -> Response {
        struct Login: Decodable {
            let username, password, repo, db: String
        }
        system.count("logins")
        let body = try await request.body.collect(upTo: SandboxControl.bodyBytesMax)
        guard let login = try? JSONDecoder().decode(Login.self, from: Data(body.readableBytesView)),
            login.repo == repository, login.db == database
        else { return .compass(.badRequest, "The login request is not valid.") }
        let token = system.logIn(
            login.username, password: login.password, repository: login.repo, database: login.db)
        guard let token else { return .compass(.unauthorized, "The user name or password is incorrect.") }
        return .json(.created, .object([("token", .string(token))]))
    }

    private func databaseInfo() -> Response {
        let names = JSONText.array([.string(CompassSchema.recordType)])
        return .json(
            .ok,
            .object([
                ("name", .string(database)), ("description", "This is an emulator."), ("isMaster", false),
                ("entityDefNames", names), ("entityDefNamesForSubmit", names), ("entityDefFamilyNames", .array([])),
            ]))
    }
}

/// A call of a user.
struct CompassCall {
    let request: Request
    let context: ConnectionContext
    let user: CompassUser
    /// The path's components below the database.
    let words: [String]

    var method: HTTPRequest.Method { request.method }

    func parameter(_ name: Substring) -> String? { request.uri.queryParameters[name].map(String.init) }

    /// - Throws: ``CompassRules/Refusal`` for a body that is not what it should be. An empty one counts as `{}`.
    func body<Body: Decodable>(as _: Body.Type) async throws -> Body {
        let bytes = try await request.body.collect(upTo: SandboxControl.bodyBytesMax)
        let data = bytes.readableBytes == 0 ? Data("{}".utf8) : Data(bytes.readableBytesView)
        guard let body = try? JSONDecoder().decode(Body.self, from: data) else {
            throw CompassRules.Refusal("The body of the request cannot be read.")
        }
        return body
    }
}

extension CompassResponder {
    /// Executes a write with its injected fault.
    func write(
        _ call: CompassCall, _ body: @escaping @Sendable (_ isTrial: Bool) throws -> Response
    ) async throws -> Response {
        let write = FaultyWrite(
            system: system, context: call.context, unavailable: .compassUnavailable,
            failed: .compass(.internalServerError, "An internal error has occurred."))
        return try await write.perform(body)
    }
}

extension Response {
    /// `{"status": 404, "message": "…"}`
    static func compass(_ status: HTTPResponse.Status, _ message: String) -> Response {
        .json(status, .object([("status", .number(status.code)), ("message", .string(message))]))
    }

    static func compass(_ refusal: CompassRules.Refusal) -> Response {
        switch refusal.status {
        case .badRequest: .compass(.badRequest, refusal.message)
        case .forbidden: .compass(.forbidden, refusal.message)
        case .notFound: .compass(.notFound, refusal.message)
        }
    }

    /// A response of a gateway or a firewall: a redirect of browsers to its login page.
    static func proxy(_ status: Int) -> Response {
        Response(
            status: HTTPResponse.Status(code: status),
            headers: [.contentType: "text/html", .location: "https://login.example.com/"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: "<html><body>Please log in.</body></html>")))
    }

    static var compassNotFound: Response { .compass(.notFound, "The resource was not found.") }

    static var compassUnavailable: Response { .compass(.serviceUnavailable, "The service is unavailable.") }
}
