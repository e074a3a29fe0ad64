internal import BackendHTTP
internal import BackendProtocol
internal import FoundationEssentials
internal import HTTPClient

/// Compass's JSON over HTTP: addresses, tokens, and the new login after a refused one.
struct CompassConnection: Sendable {
    /// The root of the REST API.
    static let root = "/ccmweb/rest"
    /// An answer's body is at most this large: a page of 500 rows with long texts is below it.
    static let answerBytesMax = 32 * 1024 * 1024

    let settings: CompassSettings
    let account: CompassAccount
    private let client: Client
    private let login: SharedLogin<String>

    init(_ settings: CompassSettings, _ account: CompassAccount, _ client: Client) {
        self.settings = settings
        self.account = account
        self.client = client
        login = SharedLogin(keepsRefusal: settings.isRefusalFinal) { await Self.logIn(settings, account, client) }
    }

    /// Below the database's path.
    var recordsPath: String { "/records/" + URLText.escape(settings.recordType) }

    /// An id as a segment of a path.
    ///
    /// - Throws: `refused` for what would make it another path, and can be no id.
    static func segment(_ id: String) throws(BackendError) -> String {
        guard !["", ".", ".."].contains(id) else { throw .refused(["'\(id)' is no id"]) }
        return URLText.escape(id)
    }

    // MARK: Reading

    /// Reads what needs no account.
    ///
    /// - Parameter path: Below the root.
    func readOpenly(_ path: String) async throws(BackendError) -> Response {
        let response = try await client.read(Self.request("GET", path, settings))
        try CompassAnswer.check(response, isWrite: false, account)
        return response
    }

    /// - Parameter path: Below the database's.
    func read(_ path: String) async throws(BackendError) -> Response {
        let request = Self.request("GET", databasePath + path, settings)
        return try await authorized { authorization throws(BackendError) in
            try await client.read(request.with(authorization))
        }
    }

    /// - Returns: 2xx, or `nil` when there is no such thing.
    func readIfThere(_ path: String) async throws(BackendError) -> Response? {
        let response = try await read(path)
        if CompassAnswer.isAbsent(response) { return nil }
        try CompassAnswer.check(response, isWrite: false, mayBeForbidden: true, account)
        return response
    }

    // MARK: Writing

    /// Sends once, and once more when the token was refused: then nothing was done.
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
        guard tokenAsGiven == nil else {
            return try CompassAnswer.check(try await read(""), isWrite: false, account)
        }
        _ = await login.forget()
        _ = try await login.current()
    }

    /// A personal access token that is sent without having been tried.
    private var tokenAsGiven: String? {
        guard case .personalAccessToken(let token) = account, !settings.isRefusalFinal else { return nil }
        return token
    }

    func logOff() async throws(BackendError) {
        guard case .password = account, let authorization = await login.forget() else { return }
        let request = Self.request("POST", "/authenticate/logoff", settings, []).with(authorization)
        let response = try await client.read(request)
        // A token that is refused is as good as given back.
        if response.status == 401 { return }
        try CompassAnswer.check(response, isWrite: false, account)
    }

    private func authorized(
        _ send: (_ authorization: String) async throws(BackendError) -> Response
    ) async throws(BackendError) -> Response {
        if let tokenAsGiven { return try await send("Basic " + tokenAsGiven) }
        let held = try await login.current()
        let response = try await send(held.login)
        guard response.status == 401 else { return response }
        return try await send(try await login.replacing(held).login)
    }

    /// - Returns: What calls are authorized by.
    private static func logIn(
        _ settings: CompassSettings, _ account: CompassAccount, _ client: Client
    ) async -> Result<String, BackendError> {
        switch account {
        case .password(let user, let password): await logIn(settings, account, user, password, client)
        case .personalAccessToken(let token): await attempt("Basic " + token, settings, account, client)
        }
    }

    private static func attempt(
        _ authorization: String, _ settings: CompassSettings, _ account: CompassAccount, _ client: Client
    ) async -> Result<String, BackendError> {
        do throws(BackendError) {
            let request = request("GET", databasePath(settings), settings).with(authorization)
            try CompassAnswer.check(try await client.read(request), isWrite: false, account)
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
            return .failure(.unauthorized(reason: "there is nothing to log in with"))
        }
        do throws(BackendError) {
            // A login that is made twice does no harm.
            let response = try await client.read(request("POST", "/authenticate", settings, Array(body)))
            if response.status == 400, CompassAnswer.isFromService(response) {
                // 400 is how a server refuses a login of a user, repository or database that it does not have.
                let reason = CompassAnswer.message(of: response)
                return .failure(.unauthorized(reason: "HTTP 400: " + account.redacted(BackendMessage.bounded(reason))))
            }
            try CompassAnswer.check(response, isWrite: false, account)
            let token = try HTTPAnswer.decode(Token.self, from: response.body).token
            guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                return .failure(.notProcessed(reason: "the server gave no token", retryAfter: nil))
            }
            return .success("Bearer " + token)
        } catch {
            return .failure(error)
        }
    }

    // MARK: Requests

    private var databasePath: String { Self.databasePath(settings) }

    private static func databasePath(_ settings: CompassSettings) -> String {
        "/repos/\(URLText.escape(settings.repository))/databases/\(URLText.escape(settings.database))"
    }

    private static func request(
        _ method: String, _ path: String, _ settings: CompassSettings, _ body: [UInt8]? = nil
    ) -> Request {
        var headers = [(name: "Accept", value: "application/json")]
        if body != nil { headers.append((name: "Content-Type", value: "application/json")) }
        return Request(
            method, settings.serverURL + root + path, headers: headers, body: body, connectMax: settings.connectMax,
            totalMax: settings.callMax, answerBytesMax: answerBytesMax)
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
    /// A text without this account's secret, in case a server repeats what it was sent.
    func redacted(_ text: String) -> String {
        let secret =
            switch self {
            case .password(_, let password): password
            case .personalAccessToken(let token): token
            }
        return secret.isEmpty ? text : text.replacing(secret, with: "…")
    }
}
