import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// An emulator of HCL Compass's REST API, after the vendor's pages and the requests of its sample apps.
struct CompassEmulator: Emulator {
    let system: CompassSystem
    private let repository: String
    private let database: String

    /// - Parameter state: The file that keeps the state over a restart; `nil` keeps it in memory only.
    init(state: String? = nil, repository: String = "CCMRepo", database: String = "SAMPL") throws {
        system = try CompassSystem(journalPath: state)
        self.repository = repository
        self.database = database
    }

    /// `{"status": 404, "message": "…"}`
    static func failure(_ status: HTTPResponse.Status, _ message: String) -> Response {
        .json(status, ["status": .number(status.code), "message": .string(message)])
    }

    func serve(_ request: Request, _ context: ConnectionContext) async throws -> Response {
        let proxyStatus = system.switches.proxyStatus
        if proxyStatus > 0 { return Self.proxyResponse(proxyStatus) }
        system.count("requests")
        if let failure = try await injectedFailure(of: request) { return failure }
        let words = request.uri.path.split(separator: "/").compactMap { $0.removingPercentEncoding }
        guard words.count > 2, words[0] == "ccmweb", words[1] == "rest" else { return Self.notFound }
        return try await serve(Array(words.dropFirst(2)), request, context)
    }

    /// - Parameter components: The path's components below the root.
    private func serve(
        _ components: [String], _ request: Request, _ context: ConnectionContext
    ) async throws -> Response {
        if components == ["repos"], request.method == .get { return repositories(request) }
        if components == ["authenticate"], request.method == .post { return try await logIn(request) }
        let authorization = request.headers[.authorization] ?? ""
        guard let user = system.withState({ $0.user(authorization) }) else {
            system.count("unauthorized")
            return Self.failure(.unauthorized, "The token is missing, expired or invalid.")
        }
        if components == ["authenticate", "logoff"], request.method == .post {
            system.count("logoffs")
            system.withState { $0.logOff(authorization) }
            return Response(status: .noContent)
        }
        guard components.count >= 4, components[0] == "repos", components[2] == "databases" else {
            return Self.notFound
        }
        guard components[1] == repository, components[3] == database else {
            return Self.failure(.notFound, "The database \(components[3]) was not found.")
        }
        let call = CompassCall(request: request, context: context, user: user, words: Array(components.dropFirst(4)))
        switch call.words.first {
        case nil where call.method == .get: return databaseInfo()
        case "workspace": return try await workspace(call)
        case "records": return try await records(call)
        default: return Self.notFound
        }
    }

    private func repositories(_ request: Request) -> Response {
        system.count("repositories")
        if request.uri.queryParameters["getDbs"].map(String.init) == "true" {
            return .json(.ok, [["name": .string(repository), "databaseNames": [.string(database)]]])
        }
        return .json(.ok, [["name": .string(repository)]])
    }

    private func logIn(_ request: Request) async throws -> Response {
        struct Login: Decodable {
            let username, password, repo, db: String
        }
        system.count("logins")
        let body = try await request.data()
        guard let login = try? JSONDecoder().decode(Login.self, from: body), login.repo == repository,
            login.db == database
        else { return Self.failure(.badRequest, "The login request is not valid.") }
        let token = system.withState { state in
            state.logIn(login.username, password: login.password, repository: login.repo, database: login.db)
        }
        guard let token else { return Self.failure(.unauthorized, "The user name or password is incorrect.") }
        return .json(.created, ["token": .string(token)])
    }

    private func databaseInfo() -> Response {
        let names: JSON = [.string(CompassSchema.recordType)]
        return .json(
            .ok,
            [
                "name": .string(database), "description": "This is an emulator.", "isMaster": false,
                "entityDefNames": names, "entityDefNamesForSubmit": names, "entityDefFamilyNames": [],
            ])
    }

    /// A response of a gateway or a firewall: a redirect of browsers to its login page.
    private static func proxyResponse(_ status: Int) -> Response {
        Response(
            status: HTTPResponse.Status(code: status),
            headers: [.contentType: "text/html", .location: "https://login.example.com/"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: "<html><body>Please log in.</body></html>")))
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
        let data = try await request.data()
        guard let body = try? JSONDecoder().decode(Body.self, from: data.isEmpty ? Data("{}".utf8) : data) else {
            throw CompassRules.Refusal("The body of the request cannot be read.")
        }
        return body
    }
}

extension CompassRules.Refusal: EmulatorRefusal {
    var response: Response { CompassEmulator.failure(HTTPResponse.Status(code: status.rawValue), message) }
}
