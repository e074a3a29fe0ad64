import Foundation
import PowerSync

/// An error of Fieldpost with a stable code, such as `offline` or `login-required`.
struct ConnectorError: Error, CustomStringConvertible {
    var code: String
    var message: String
    /// Status of the response; 0 without one.
    var status = 0
    /// Members of the server's problem (RFC 9457).
    var problem: [String: String] = [:]

    var description: String { "\(code): \(message)" }
}

/// Connects the PowerSync SDK for Swift to Fieldpost.
actor FieldpostConnector: PowerSyncBackendConnectorProtocol {
    /// Local tables of the connector, for the app's schema.
    static let localTables = [
        Table(
            name: "fieldpost_rejections",
            columns: ["table_name", "row_id", "operation", "type", "title", "detail", "data", "time"].map(Column.text),
            localOnly: true),
        Table(name: "fieldpost_uploads", columns: [.integer("sent")], localOnly: true),
    ]

    let gateway: URL, onboarding: URL
    let store: any LoginStore
    let session: URLSession
    private let onLoginRequired: @Sendable (ConnectorError) -> Void
    var renewal: Task<FieldpostLogin?, any Error>?
    private var renewedAt = Date.distantPast
    /// Tokens: refused by the gateway, in use by the SDK, and to be replaced for the SDK.
    private var refused: String?, handedOut: String?, replaced: String?
    var alignedClient: String?

    init(
        gateway: URL, onboarding: URL, store: any LoginStore, session: URLSession = .shared,
        onLoginRequired: @escaping @Sendable (ConnectorError) -> Void = { _ in }
    ) {
        self.gateway = gateway
        self.onboarding = onboarding
        self.store = store
        self.session = session
        self.onLoginRequired = onLoginRequired
    }

    /// Returns the endpoint and a valid token, or `nil` if no person is signed in. Called by the SDK.
    func fetchCredentials() async throws -> PowerSyncCredentials? {
        // The SDK keeps credentials. It requests others if the stream refused them, or if the token ends.
        replaced = handedOut
        // The stream of a moved environment answers 401. Only this request returns the new address (421).
        if replaced != nil { _ = try? await request("GET", "v1/realms") }
        let login = try await validLogin()
        handedOut = login?.accessToken
        return login.map { PowerSyncCredentials(endpoint: Self.text($0.gateway), token: $0.accessToken) }
    }

    /// Returns a login with a valid token, renewed if necessary; `nil` if the person has to log in.
    func validLogin() async throws -> FieldpostLogin? {
        if let renewal { return try await renewal.value }
        let task = Task { try await renewedLogin() }
        renewal = task
        defer { renewal = nil }
        return try await task.value
    }

    private func renewedLogin() async throws -> FieldpostLogin? {
        guard var login = try await store.load() else { return nil }
        let isRefused = login.accessToken == refused
        let isInvalid = isRefused || login.expiresAt <= Date()
        guard login.credential != nil else { return isInvalid ? nil : login }
        let isNearEnd = login.expiresAt < Date() + 300 && renewedAt < Date() - 60
        guard isRefused || isNearEnd || login.accessToken == replaced else { return login }
        do {
            return try await renew(login)
        } catch let error as ConnectorError where error.code == "login-required" {
            login.credential = nil
            try await store.save(login)
            onLoginRequired(error)
            return isInvalid ? nil : login
        } catch {
            if isInvalid { throw error }
            return login
        }
    }

    private func renew(_ login: FieldpostLogin) async throws -> FieldpostLogin {
        var next = login
        let body = try Self.json(["credential": login.credential])
        let data = try await send("POST", login.onboarding, "v1/token", body: body) { next.onboarding = $0 }
        try Self.setToken(of: data, in: &next)
        // The next credential is stored before it is used.
        try await store.save(next)
        renewedAt = Date()
        refused = nil
        return next
    }

    /// Returns the content of a response. If the environment has moved (421), repeats the request there.
    func send(
        _ method: String, _ base: URL, _ path: String, token: String? = nil, body: Data? = nil,
        type: String = "application/json", onMoved: ((URL) async throws -> Void)? = nil
    ) async throws -> Data {
        var request = URLRequest(url: base.appendingPathComponent(path), timeoutInterval: 90)
        request.httpMethod = method
        request.httpBody = body
        if body != nil { request.setValue(type, forHTTPHeaderField: "Content-Type") }
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        let data: Data, response: URLResponse
        do {
            (data, response) = try await session.data(for: request)
        } catch {
            throw ConnectorError(code: "offline", message: "The server is unreachable (\(error)).")
        }
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        if 200..<300 ~= status { return data }
        let members = try? JSONSerialization.jsonObject(with: data) as? [String: Any]
        let problem = (members ?? [:]).compactMapValues { $0 as? String }
        let prefix = "urn:fieldpost:problem:", name = problem["type"] ?? ""
        let error = ConnectorError(
            code: name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : "http-\(status)",
            message: problem["detail"] ?? problem["title"] ?? "The response is \(status).",
            status: status, problem: problem)
        guard status == 421, let onMoved, let moved = problem["baseURL"].flatMap(URL.init(string:)) else { throw error }
        try await onMoved(moved)
        return try await send(method, moved, path, token: token, body: body, type: type)
    }

    /// Sends a request to the gateway with the person's token.
    private func request(
        _ method: String, _ path: String, body: Data? = nil, type: String = "application/json"
    ) async throws -> Data {
        guard let login = try await validLogin() else {
            throw ConnectorError(code: "login-required", message: "No person is signed in.", status: 401)
        }
        let token = login.accessToken
        do {
            return try await send(method, login.gateway, path, token: token, body: body, type: type) { moved in
                var next = try await self.store.load() ?? login
                next.gateway = moved
                try await self.store.save(next)
            }
        } catch let error as ConnectorError {
            if error.status == 401 { refused = token }
            throw error
        }
    }

    private struct Answer: Decodable {
        struct Problem: Decodable { var type: String, title: String?, detail: String? }
        struct Accepted: Decodable { var position: Int64 }
        struct Result: Decodable { var op_id: Int64, accepted: Accepted?, rejected: Problem? }
        var results: [Result], expectedSequence: Int64
    }

    /// Uploads entries, which are JSON already, and returns their results.
    private func post(_ client: String, _ numbers: [Int64], _ entries: [String]) async throws -> Answer {
        let body = Data(#"{"clientId":"\#(client)","entries":[\#(entries.joined(separator: ","))]}"#.utf8)
        let answer = try JSONDecoder().decode(Answer.self, from: try await request("POST", "v1/uploads", body: body))
        let isComplete = answer.results.allSatisfy { $0.accepted != nil || $0.rejected != nil }
        if isComplete && answer.results.map(\.op_id) == numbers { return answer }
        throw ConnectorError(
            code: "malformed-response", message: "The results are not those of the uploaded entries.")
    }

    /// Uploads the oldest entries of the queue, and stores rejections. The SDK retries 5 s after an error.
    func uploadData(database: any PowerSyncDatabaseProtocol) async throws {
        let client = try await database.get("SELECT powersync_client_id()") { try $0.getString(index: 0) }
        if alignedClient != client {
            try await alignNumbers(database, expected: post(client, [], []).expectedSequence)
            alignedClient = client
        }
        var countMax: Int32 = 200
        while let batch = try await database.getCrudBatch(limit: countMax), let last = batch.crud.last?.clientId {
            let entries = try await database.getAll(sql: Statement.entries, parameters: [last]) { cursor in
                try cursor.getString(index: 0)
            }
            try await database.writeTransaction { transaction in try markSent(transaction, last) }
            let results: [Answer.Result]
            do {
                results = try await post(client, batch.crud.map(\.clientId), entries).results
            } catch let error as ConnectorError where error.status == 413 {
                countMax = Int32((batch.crud.count + 1) / 2)
                if batch.crud.count > 1 { continue }
                // No request can contain this entry.
                let problem = Answer.Problem(
                    type: error.problem["type"] ?? "urn:fieldpost:problem:body-too-large",
                    title: error.problem["title"], detail: error.problem["detail"])
                results = [Answer.Result(op_id: last, accepted: nil, rejected: problem)]
            }
            let time = ISO8601DateFormatter().string(from: Date())
            // After a crash before `complete`, the repeat stores the same rejections.
            try await database.writeTransaction { transaction in
                for result in results {
                    guard let rejected = result.rejected else { continue }
                    // The tables are views, which have no upsert.
                    try transaction.execute(sql: Statement.removeRejection, parameters: [String(result.op_id)])
                    try transaction.execute(
                        sql: Statement.addRejection,
                        parameters: [rejected.type, rejected.title, rejected.detail, time, result.op_id])
                }
            }
            try await batch.complete()
            return
        }
    }

    /// Renumbers waiting entries if the server has results of numbers that this database never sent.
    /// It was restored from a backup, or copied. New entries would get the stored results of other ones.
    private func alignNumbers(_ database: any PowerSyncDatabaseProtocol, expected: Int64) async throws {
        try await database.writeTransaction { transaction in
            func number(_ sql: String, _ parameters: [(any Sendable)?] = []) throws -> Int64 {
                try transaction.get(sql: sql, parameters: parameters) { try $0.getInt64(index: 0) }
            }
            let sent = try number(Statement.sent)
            if expected <= sent + 1 { return }
            // Entries up to `sent` keep their numbers: they were sent, and a repeat is safe.
            let last = try number(Statement.last)
            let unsent = try number(Statement.unsent, [sent, last + 1])
            // The new numbers are above all old ones, so that they do not collide.
            let shift = max(expected, last + 1) - unsent
            try transaction.execute(sql: Statement.renumber, parameters: [shift, sent])
            try transaction.execute(sql: Statement.removeCounter, parameters: [])
            try transaction.execute(sql: Statement.addCounter, parameters: [last + shift])
        }
    }

    /// Uploads an image under a random UUID, before the row that refers to it. Repeats are safe.
    func putImage(_ id: UUID, _ bytes: Data, type: String = "image/jpeg") async throws {
        _ = try await request("PUT", "v1/blobs/\(id.uuidString.lowercased())", body: bytes, type: type)
    }

    /// Downloads an image. It never changes, so an app keeps it.
    func getImage(_ id: UUID) async throws -> Data {
        try await request("GET", "v1/blobs/\(id.uuidString.lowercased())")
    }

    static func json(_ members: [String: String?]) throws -> Data { try JSONEncoder().encode(members) }

    private static func text(_ url: URL) -> String {
        url.absoluteString.hasSuffix("/") ? String(url.absoluteString.dropLast()) : url.absoluteString
    }

}

/// Records the highest number that was sent, before it is sent.
private func markSent(_ transaction: any Transaction, _ number: Int64) throws {
    try transaction.execute(sql: Statement.removeMark, parameters: [number])
    try transaction.execute(sql: Statement.addMark, parameters: [number])
}

/// Statements on the SDK's queue `ps_crud` and on the local tables. The connectors of all languages have the same.
enum Statement {
    static let entries = """
        SELECT json_set(json_insert(data, '$.data', NULL), '$.op_id', id, '$.tx_id', tx_id) AS entry
        FROM ps_crud WHERE id <= ? ORDER BY id
        """
    static let removeRejection = "DELETE FROM fieldpost_rejections WHERE id = ?"
    static let addRejection = """
        INSERT INTO fieldpost_rejections
        (id, table_name, row_id, operation, type, title, detail, data, time)
        SELECT CAST(id AS TEXT), json_extract(data, '$.type'), json_extract(data, '$.id'),
            json_extract(data, '$.op'), ?, ?, ?, json_extract(data, '$.data'), ? FROM ps_crud WHERE id = ?
        """
    static let removeMark = "DELETE FROM fieldpost_uploads WHERE id = 'sent' AND sent < ?"
    static let addMark = """
        INSERT INTO fieldpost_uploads (id, sent)
        SELECT 'sent', ? WHERE NOT EXISTS (SELECT 1 FROM fieldpost_uploads WHERE id = 'sent')
        """
    static let sent = """
        SELECT coalesce((SELECT sent FROM fieldpost_uploads WHERE id = 'sent'),
        (SELECT min(id) - 1 FROM ps_crud), (SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number
        """
    static let last = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number"
    static let unsent = "SELECT coalesce((SELECT min(id) FROM ps_crud WHERE id > ?), ?) AS number"
    static let renumber = "UPDATE ps_crud SET id = id + ? WHERE id > ?"
    static let removeCounter = "DELETE FROM sqlite_sequence WHERE name = 'ps_crud'"
    static let addCounter = "INSERT INTO sqlite_sequence (name, seq) VALUES ('ps_crud', ?)"
    static let count = "SELECT count(*) AS number FROM ps_crud"
}
