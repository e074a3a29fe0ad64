internal import BackendHTTP
internal import BackendProtocol
internal import HTTPClient

/// A CSRF token with the session whose cookies it belongs to: the one is refused without the other.
struct SAPLogin: Sendable {
    let token: String
    let session: Session

    /// Fetches a token, in a session of its own.
    static func fetch(_ client: Client, _ settings: SAPSettings) async -> Result<SAPLogin, BackendError> {
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
