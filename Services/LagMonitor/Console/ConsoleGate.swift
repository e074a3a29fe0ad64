import Audit
import Crypto
import HTTPServer
import HTTPTypes
import Hummingbird

/// Lets requests of administrators through, and nobody else's.
struct ConsoleGate: Sendable {
    /// Whoever asks, once it is known that they may.
    struct Visitor: Sendable {
        let session: ConsoleSessions.Session
        let administrator: Administrator
    }

    let settings: ConsoleSettings
    let cookies: ConsoleCookies
    let sessions: ConsoleSessions
    /// Of cookies that are no session's.
    let guesses: SignInBudget

    static let tokenField = "fieldpost-console-token"
    /// Of requests that the page makes by itself, whatever it says: nobody need be there.
    static let automaticField = "fieldpost-console-automatic"

    /// - Throws: `Problem` 401 without a session, without further detail; 403 for what another site's page sent; 429
    ///   for too many requests of the session, or guesses of the network.
    func visitor(_ request: Request, _ context: EdgeContext) throws -> Visitor {
        guard let id = cookies.session(in: request.headers) else { throw Self.notSignedIn }
        let isAutomatic = HTTPField.Name(Self.automaticField).map { request.headers[$0] != nil } ?? false
        switch sessions.use(id, isAutomatic: isAutomatic) {
        case .none:
            // After the session lookup: a valid session is not limited for guesses from the same network.
            try guesses.count(settings.clients.text(request, context))
            throw Self.notSignedIn
        case .busy:
            throw Problem(
                .tooManyRequests, detail: "Too many requests; try again in a minute.", headers: [.retryAfter: "60"])
        case .session(let session):
            // Browsers say which page a request comes from.
            let site = HTTPField.Name("Sec-Fetch-Site").flatMap { request.headers[$0] }
            guard site == nil || site == "same-origin" else { throw Self.ofAnotherSite }
            let address = settings.clients.text(request, context)
            return Visitor(
                session: session,
                administrator: Administrator(actor: "console:\(session.email)", address: address))
        }
    }

    /// The same for a request that changes something: it is of this page, and repeats the session's token.
    func actor(_ request: Request, _ context: EdgeContext) throws -> Visitor {
        let visitor = try visitor(request, context)
        guard request.headers[.origin] == settings.origin else { throw Self.ofAnotherSite }
        let given = HTTPField.Name(Self.tokenField).flatMap { request.headers[$0] } ?? ""
        guard SHA256.hash(data: Array(given.utf8)) == SHA256.hash(data: Array(visitor.session.token.utf8)) else {
            throw Self.ofAnotherSite
        }
        return visitor
    }

    private static let notSignedIn = Problem(.unauthorized, detail: "Sign in.")
    private static let ofAnotherSite = Problem(.forbidden, detail: "This was not sent by the console's page.")
}
