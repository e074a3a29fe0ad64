internal import BackendProtocol
internal import HTTP

/// A CSRF token with the session whose cookies it belongs to: the one is refused without the other.
struct SAPLogin: Sendable {
    let token: String
    let session: Session
}

/// Fetches CSRF tokens, one for all calls at a time.
actor SAPLogins {
    private let client: Client
    private let settings: SAPSettings
    private var login: SAPLogin?
    private var fetching: Task<Result<SAPLogin, BackendError>, Never>?

    init(client: Client, settings: SAPSettings) {
        self.client = client
        self.settings = settings
    }

    func current() async throws(BackendError) -> SAPLogin {
        if let login { return login }
        return try await fetch()
    }

    /// A login other than `refused`; calls that were refused together share one.
    func replacing(_ refused: SAPLogin) async throws(BackendError) -> SAPLogin {
        if let login, login.session !== refused.session { return login }
        login = nil
        return try await fetch()
    }

    private func fetch() async throws(BackendError) -> SAPLogin {
        if let fetching { return try await fetching.value.get() }
        let task = Task { [client, settings] in await SAPLogins.fetch(client, settings) }
        fetching = task
        let result = await task.value
        fetching = nil
        if case .success(let fetched) = result { login = fetched }
        return try result.get()
    }

    private static func fetch(_ client: Client, _ settings: SAPSettings) async -> Result<SAPLogin, BackendError> {
        let session = Session()
        let request = Request(
            settings.baseURL + SAPConnection.timeSheet + "/?$format=json",
            headers: settings.headers + [("x-csrf-token", "fetch")], connectMax: settings.connectMax,
            totalMax: settings.totalMax, session: session)
        do throws(BackendError) {
            // Asking for a token changes nothing.
            let response = try await client.read(request)
            if let token = response.headers["x-csrf-token"], !token.isEmpty, token.lowercased() != "required" {
                return .success(SAPLogin(token: token, session: session))
            }
            try SAPAnswer.check(response, isWrite: false)
            return .failure(.notProcessed(reason: "the system gave no CSRF token", retryAfter: nil))
        } catch {
            return .failure(error)
        }
    }
}
