internal import BackendHTTP
internal import BackendProtocol
internal import HTTPClient

/// A CSRF token with the session of its cookies; each is rejected without the other.
struct SAPLogin: Sendable {
    let token: String
    let session: Session

    /// Fetches a token in a new session.
    static func fetch(_ client: Client, _ settings: SAPSettings) async -> Result<SAPLogin, BackendError> {
        let session = Session()
        let request = Request(
            settings.baseURL + SAPConnection.timeSheet + "/?$format=json",
            headers: settings.headers + [("x-csrf-token", "fetch")], connectMax: settings.connectMax,
            totalMax: settings.totalMax, session: session)
        do throws(BackendError) {
            // Fetching a token has no side effects.
            let response = try await client.read(request)
            if let token = response.headers["x-csrf-token"], !token.isEmpty, token.lowercased() != "required" {
                return .success(SAPLogin(token: token, session: session))
            }
            try SAPResponse.check(response, isWrite: false)
            return .failure(.notProcessed(reason: "the system returned no CSRF token", retryAfter: nil))
        } catch {
            return .failure(error)
        }
    }
}
