import Essentials
import Foundation
import HTTPServer
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

    func serve(_ request: Request, _ context: EdgeContext) async throws -> Response {
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
        _ components: [String], _ request: Request, _ context: EdgeContext
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

    // MARK: Control

    func control(_ request: Request) async throws -> Response? {
        switch (request.method, request.uri.path) {
        case (.post, "/sandbox/changes"):
            return try await change(request) { (changes: [CompassChange]) in
                ["records": .texts(try system.perform(changes))]
            }
        case (.post, "/sandbox/folders"):
            return try await change(request) { (folder: NewFolder) in ["dbId": .number(try add(folder))] }
        case (.post, "/sandbox/clock"):
            return try await change(request) { (clock: NewClock) in
                let now = system.withState { state in
                    state.clockMs =
                        clock.advanceSeconds.map { state.nowMs + Int64($0) * 1_000 }
                        ?? clock.now?.millisecondsSinceEpoch
                    return state.nowMs
                }
                return ["now": .string(Timestamp(millisecondsSinceEpoch: now).description)]
            }
        case (.post, "/sandbox/tokens/end"):
            system.withState { $0.logins.endAll() }
            return .json(.ok, ["ended": true])
        case (.get, "/sandbox/sessions"):
            return .json(.ok, .array(system.withState { $0.sessions.all }.map { Self.json($0) }))
        case (.get, "/sandbox/queries"):
            return .json(.ok, .array(system.withState { Self.queries($0.workspace) }))
        case (.get, "/sandbox/history"):
            let (after, zone) = (request.after, system.switches.zone)
            return lines(system.withState { $0.changes(after: after) }) { Self.line($0.record, $0.entry, zone) }
        default: return nil
        }
    }

    /// `{"now": "2026-10-25T00:30:00Z"}` stops the clock there, `{}` lets it go as this machine's, and
    /// `{"advanceSeconds": 300}` sets it on.
    private struct NewClock: Decodable {
        let now: Timestamp?
        let advanceSeconds: Int?
    }

    /// A folder below a user's own.
    private struct NewFolder: Decodable {
        let user: String
        /// Names below the personal root; the last one is made.
        let path: [String]
    }

    private func add(_ new: NewFolder) throws -> Int {
        try system.withState { state in
            let workspace = state.workspace
            let root = workspace.folders.values.first { $0.parent == nil && $0.owner == new.user }
            let parent = new.path.dropLast().reduce(root) { folder, name in
                folder.flatMap { folder in workspace.subfolders(of: folder.id).first { $0.name == name } }
            }
            guard let parent, let name = new.path.last else {
                throw EmulatorError("there is no parent folder for \(new.path) of \(new.user)")
            }
            state.write(
                .folder(CompassWorkspace.Folder(id: workspace.nextID, name: name, parent: parent.id, owner: new.user)))
            return workspace.nextID
        }
    }

    private static func queries(_ workspace: CompassWorkspace) -> [JSON] {
        workspace.queries.values.sorted { $0.id < $1.id }.map { query in
            [
                "dbId": .string(String(query.id)), "name": .string(query.definition.name),
                "owner": .text(workspace.folders[query.folder]?.owner),
            ]
        }
    }

    private static func json(_ session: CompassSession) -> JSON {
        [
            "user": .string(session.user), "record": .string(CompassRecord.id(ofNumber: session.number)),
            "action": .string(session.action.name), "isNew": .bool(session.isNew),
        ]
    }

    private static func line(_ record: CompassRecord, _ entry: CompassHistory, _ zone: CompassZone) -> JSON {
        [
            "number": .number(entry.number), "record": .string(record.id), "action": .string(entry.action),
            "user": .string(entry.user), "at": .string(Timestamp(millisecondsSinceEpoch: entry.atMs).description),
            "timestamp": .string(zone.text(entry.clockMs)),
            "visibleAt": .string(Timestamp(millisecondsSinceEpoch: entry.visibleAtMs).description),
            "oldState": .string(entry.oldState), "newState": .string(entry.newState),
            "owner": .string(entry.owner), "headline": .string(record.fields["Headline"] ?? ""),
            "isDeleted": .bool(record.isDeleted),
            "changes": .object(entry.changes.sorted { $0.key < $1.key }.map { ($0.key, JSON.string($0.value)) }),
        ]
    }
}

/// A call of a user.
struct CompassCall {
    let request: Request
    let context: EdgeContext
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
