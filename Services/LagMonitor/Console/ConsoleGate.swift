import Audit
import Crypto
import HTTPServer
import HTTPTypes
import Hummingbird
import Model
import Postgres

/// Authenticates and authorises requests to the console's API.
struct ConsoleGate: Sendable {
    /// An authenticated administrator.
    struct Principal: Sendable {
        let session: ConsoleSessions.Session
        let administrator: Administrator

        /// Writes a record of an act to the audit log.
        func record(
            _ action: AuditRecord.Action, _ subject: String, in environment: EnvironmentID?,
            detail: [String: String] = [:], on connection: inout Connection
        ) throws {
            try connection.run(administrator.audit(action, subject, in: environment, detail: detail))
        }
    }

    let settings: ConsoleSettings
    let cookies: ConsoleCookies
    let sessions: ConsoleSessions
    /// The budget of requests with invalid session cookies.
    let guesses: SignInBudget

    static let tokenField = "fieldpost-console-token"
    /// The header of automatic refreshes, which do not count as activity.
    static let automaticField = "fieldpost-console-automatic"

    /// Authenticates a request.
    ///
    /// - Throws: `Problem` 401 without a valid session and without further detail; 403 for cross-site requests; 429 if
    ///   the session sends too many requests, or its network too many invalid cookies.
    func authenticate(_ request: Request, _ context: EdgeContext) throws -> Principal {
        guard let id = cookies.session(in: request.headers) else { throw Self.notSignedIn }
        let isAutomatic = HTTPField.Name(Self.automaticField).map { request.headers[$0] != nil } ?? false
        switch sessions.use(id, isAutomatic: isAutomatic) {
        case .none:
            // After the session lookup: a valid session is not limited for guesses from the same network.
            try guesses.count(settings.clients.text(request, context))
            throw Self.notSignedIn
        case .busy:
            throw Problem(
                .tooManyRequests, detail: "Too many requests; retry in one minute.", headers: [.retryAfter: "60"])
        case .session(let session):
            // Browsers send the relation of the requesting page to this site.
            let site = HTTPField.Name("Sec-Fetch-Site").flatMap { request.headers[$0] }
            guard site == nil || site == "same-origin" else { throw Self.crossSite }
            let address = settings.clients.text(request, context)
            return Principal(
                session: session, administrator: Administrator(actor: "console:\(session.email)", address: address))
        }
    }

    /// Authenticates a request that changes data: requires the page's own origin and the session's token.
    func authorizeChange(_ request: Request, _ context: EdgeContext) throws -> Principal {
        let principal = try authenticate(request, context)
        guard request.headers[.origin] == settings.origin else { throw Self.crossSite }
        let given = HTTPField.Name(Self.tokenField).flatMap { request.headers[$0] } ?? ""
        guard SHA256.hash(data: Array(given.utf8)) == SHA256.hash(data: Array(principal.session.token.utf8)) else {
            throw Self.crossSite
        }
        return principal
    }

    private static let notSignedIn = Problem(.unauthorized, detail: "Sign in first.")
    private static let crossSite = Problem(.forbidden, detail: "Cross-site requests are not allowed.")
}
