internal import BackendHTTP
internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import HTTPClient

/// Compass's JSON over HTTP: addresses, tokens, and a new login after a rejected token.
struct CompassConnection: Sendable {
    /// The root of the REST API.
    static let root = "/ccmweb/rest"
    /// Maximum size of a response; a page of 500 rows with long texts is below it.
    static let responseBytesMax = 32 * 1024 * 1024

    let settings: CompassSettings
    let account: CompassAccount
    private let client: Client
    private let login: SharedFetch<String>

    init(_ settings: CompassSettings, _ account: CompassAccount, _ client: Client) {
        self.settings = settings
        self.account = account
        self.client = client
        login = SharedFetch(keepsRefusal: settings.isRefusalFinal) { await Self.logIn(settings, account, client) }
    }

    /// The path of the records, relative to the database's path.
    var recordsPath: String { "/records/" + FormFields.encode(settings.recordType) }

    /// Returns an id as a path segment.
    ///
    /// - Throws: `refused` for a segment that would change the path, which is never an id.
    static func segment(_ id: String) throws(BackendError) -> String {
        guard !["", ".", ".."].contains(id) else { throw .refused(["'\(id)' is not an id"]) }
        return FormFields.encode(id)
    }

    // MARK: Reading

    /// Reads a resource that needs no login.
    ///
    /// - Parameter path: Relative to the root.
    func readWithoutLogin(_ path: String) async throws(BackendError) -> Response {
        let response = try await client.read(Self.request("GET", path, settings))
        try CompassResponse.check(response, isWrite: false, account)
        return response
    }

    /// - Parameter path: Relative to the database's path.
    func read(_ path: String) async throws(BackendError) -> Response {
        let request = Self.request("GET", databasePath + path, settings)
        return try await authorized { authorization throws(BackendError) in
            try await client.read(request.with(authorization))
        }
    }

    /// - Returns: A 2xx response; `nil` if the object does not exist.
    func readIfPresent(_ path: String) async throws(BackendError) -> Response? {
        let response = try await read(path)
        if CompassResponse.isAbsent(response) { return nil }
        try CompassResponse.check(response, isWrite: false, mayBeForbidden: true, account)
        return response
    }

    // MARK: Writing

    /// Sends a request once, and a second time if the token was rejected, because then nothing was processed.
    func write(
        _ method: String, _ path: String, _ body: [UInt8]? = nil, before deadline: WriteDeadline = .never
    ) async throws(BackendError) -> Response {
        var request = Self.request(method, databasePath + path, settings, body)
        request.sendBefore = deadline.instant
        let ready = request
        return try await authorized { authorization throws(BackendError) in
            try await client.write(ready.with(authorization))
        }
    }

    // MARK: Logins

    func logIn() async throws(BackendError) {
        guard untestedToken == nil else {
            return try CompassResponse.check(try await read(""), isWrite: false, account)
        }
        _ = await login.remove()
        _ = try await login.current()
    }

    /// A personal access token that is sent without a preceding test.
    private var untestedToken: String? {
        guard case .personalAccessToken(let token) = account, !settings.isRefusalFinal else { return nil }
        return token
    }

    func logOff() async throws(BackendError) {
        guard case .password = account, let authorization = await login.remove() else { return }
        let request = Self.request("POST", "/authenticate/logoff", settings, []).with(authorization)
        let response = try await client.read(request)
        // A rejected token needs no logoff.
        if response.status == 401 { return }
        try CompassResponse.check(response, isWrite: false, account)
    }

    private func authorized(
        _ send: (_ authorization: String) async throws(BackendError) -> Response
    ) async throws(BackendError) -> Response {
        if let untestedToken { return try await send("Basic " + untestedToken) }
        let current = try await login.current()
        let response = try await send(current.value)
        guard response.status == 401 else { return response }
        return try await send(try await login.replacing(current).value)
    }

    /// - Returns: The value of the `Authorization` header.
    private static func logIn(
        _ settings: CompassSettings, _ account: CompassAccount, _ client: Client
    ) async -> Result<String, BackendError> {
        switch account {
        case .password(let user, let password): await logIn(settings, account, user, password, client)
        case .personalAccessToken(let token): await test("Basic " + token, settings, account, client)
        }
    }

    private static func test(
        _ authorization: String, _ settings: CompassSettings, _ account: CompassAccount, _ client: Client
    ) async -> Result<String, BackendError> {
        do throws(BackendError) {
            let request = request("GET", databasePath(settings), settings).with(authorization)
            try CompassResponse.check(try await client.read(request), isWrite: false, account)
            return .success(authorization)
        } catch {
            return .failure(error)
        }
    }

    private static func logIn(
        _ settings: CompassSettings, _ account: CompassAccount, _ user: String, _ password: String, _ client: Client
    ) async -> Result<String, BackendError> {
        struct Login: Encodable {
            let username: String
            let password: String
            let repo: String
            let db: String
        }
        struct Token: Decodable { let token: String }
        let login = Login(username: user, password: password, repo: settings.repository, db: settings.database)
        guard let body = try? JSONEncoder().encode(login) else {
            return .failure(.unauthorized(reason: "the credentials cannot be encoded as JSON"))
        }
        do throws(BackendError) {
            // A repeated login is harmless.
            let response = try await client.read(request("POST", "/authenticate", settings, Array(body)))
            if response.status == 400, CompassResponse.isFromService(response) {
                // 400 rejects a login with an unknown user, repository or database.
                let reason = CompassResponse.message(of: response)
                return .failure(
                    .unauthorized(reason: "HTTP 400: " + account.redacted(BackendMessage.truncated(reason))))
            }
            try CompassResponse.check(response, isWrite: false, account)
            let token = try BackendResponse.decode(Token.self, from: response.body).token
            guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                return .failure(.notProcessed(reason: "the server returned no token", retryAfter: nil))
            }
            return .success("Bearer " + token)
        } catch {
            return .failure(error)
        }
    }

    // MARK: Requests

    private var databasePath: String { Self.databasePath(settings) }

    private static func databasePath(_ settings: CompassSettings) -> String {
        "/repos/\(FormFields.encode(settings.repository))/databases/\(FormFields.encode(settings.database))"
    }

    private static func request(
        _ method: String, _ path: String, _ settings: CompassSettings, _ body: [UInt8]? = nil
    ) -> Request {
        var headers = [(name: "Accept", value: "application/json")]
        if body != nil { headers.append((name: "Content-Type", value: "application/json")) }
        return Request(
            method, settings.serverURL + root + path, headers: headers, body: body, connectMax: settings.connectMax,
            totalMax: settings.callMax, responseBytesMax: responseBytesMax)
    }
}

extension Request {
    fileprivate func with(_ authorization: String) -> Request {
        var request = self
        request.headers.append((name: "Authorization", value: authorization))
        return request
    }
}

extension CompassAccount {
    /// Returns a text without this account's secret, in case a server repeats the request.
    func redacted(_ text: String) -> String {
        let secret =
            switch self {
            case .password(_, let password): password
            case .personalAccessToken(let token): token
            }
        return secret.isEmpty ? text : text.replacing(secret, with: "…")
    }
}
