import Audit
import Essentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Identity
import Logging
import Postgres
import Tenants

/// Has an operator log in at their OpenID provider: code flow with PKCE, `state` and `nonce`.
struct ConsoleLogin: Sendable {
    let settings: ConsoleSettings
    let cookies: ConsoleCookies
    let sessions: ConsoleSessions
    let provider: OpenIDProvider
    let providers: ProviderDirectory
    let verifier: TokenVerifier
    let database: ConsoleDatabase
    let logger: Logger

    private var redirect: String { settings.origin + "/callback" }

    /// Why nobody is let in.
    private enum Refusal: Error {
        /// Nothing was begun in this browser, or it is over.
        case unexpected
        case provider(String)
        case notAdministrator(String)
    }

    /// Sends the browser to the provider.
    @concurrent func begin() async -> Response {
        do {
            let metadata = try await providers.metadata(of: settings.issuer, at: nil)
            let request = AuthorizationRequest(
                state: Base64URL.random(byteCount: 32), nonce: Base64URL.random(byteCount: 32),
                verifier: Base64URL.random(byteCount: 32))
            let url = request.url(as: settings.client.id, scopes: settings.scopes, at: metadata, redirect: redirect)
            return Response(
                status: .seeOther,
                headers: [.location: url, .setCookie: cookies.begin(request), .cacheControl: "no-store"])
        } catch {
            logger.warning("the operators' provider cannot be asked", metadata: ["error": "\(error)"])
            return ConsolePage.note(.serviceUnavailable, "The identity provider does not answer at the moment.")
        }
    }

    /// The browser is back with the provider's answer.
    @concurrent func finish(_ request: Request, from client: String) async throws -> Response {
        do {
            return try await letIn(request, from: client)
        } catch let problem as Problem {
            // Who is let in, or refused, is in the audit log, or is not let in.
            var response = ConsolePage.note(problem.status, problem.detail ?? "Try again.")
            response.headers[values: .setCookie] = [cookies.endLogin]
            return response
        }
    }

    private func letIn(_ request: Request, from client: String) async throws -> Response {
        do {
            let (identity, idToken) = try await identity(request)
            guard let email = identity.email else { throw Refusal.provider("no e-mail address") }
            let isOne = AdministratorRule.isAdministrator(
                email: email, claims: { ClaimValues.of(idToken, $0) }, among: settings.administrators)
            guard isOne else { throw Refusal.notAdministrator(email) }
            try await audit(.consoleOpened, email, from: client)
            let id = sessions.begin(email)
            var response = Response(status: .seeOther, headers: [.location: "/", .cacheControl: "no-store"])
            response.headers[values: .setCookie] = [
                cookies.endLogin, cookies.begin(id, seconds: settings.sessionMax.components.seconds),
            ]
            return response
        } catch let refusal as Refusal {
            return try await answer(refusal, from: client)
        } catch let failure as ProviderFailure {
            return try await answer(.provider("\(failure)"), from: client)
        } catch let error as TokenError {
            return try await answer(.provider("\(error)"), from: client)
        }
    }

    private func identity(_ request: Request) async throws -> (Tenants.Identity, idToken: String) {
        guard let begun = cookies.login(in: request.headers), let fields = FormFields(request.uri.query ?? ""),
            fields["state"] == begun.state
        else { throw Refusal.unexpected }
        let metadata = try await providers.metadata(of: settings.issuer, at: nil)
        let answer = AuthorizationAnswer(fields, issuer: settings.issuer, namesIssuer: metadata.namesIssuer)
        guard case .code(let code) = answer else { throw Refusal.provider("\(answer)") }
        let tokens = try await provider.exchange(
            code, verifier: begun.verifier, redirect: redirect, as: settings.client, at: metadata)
        guard let idToken = tokens.idToken else { throw Refusal.provider("no ID token") }
        let known = EnvironmentIdentity(
            environment: 0, issuer: settings.issuer, audience: settings.client.id, jwksURL: metadata.jwksURL,
            vouching: settings.domains.isEmpty ? .emailVerified : .issuer, domains: Set(settings.domains))
        let identity = try await verifier.identity(of: idToken, among: [known])
        if let claim = AuthorizationRequest.objection(to: identity, nonce: begun.nonce, client: settings.client.id) {
            throw Refusal.provider(claim)
        }
        return (identity, idToken)
    }

    private func answer(_ refusal: Refusal, from client: String) async throws -> Response {
        var response: Response
        switch refusal {
        case .unexpected:
            response = ConsolePage.note(.badRequest, "This sign-in was not begun here, or it is over. Begin again.")
        case .provider(let reason):
            // What it holds came from outside: it is cut, and for the log alone.
            logger.info("a sign-in at the console failed", metadata: ["reason": "\(reason.prefix(scalars: 300))"])
            response = ConsolePage.note(.forbidden, "The sign-in did not work. The log of lag-monitor says why.")
        case .notAdministrator(let email):
            try await audit(.consoleRefused, email, from: client)
            response = ConsolePage.note(.forbidden, "You are signed in, and not one of the administrators.")
        }
        response.headers[values: .setCookie] = [cookies.endLogin]
        return response
    }

    private func audit(_ action: AuditRecord.Action, _ email: String, from client: String) async throws {
        let administrator = Administrator(actor: "console:\(email)", address: client)
        try await database.run { connection in
            _ = try connection.run([administrator.audit(action, email, in: nil)])
        }
    }
}
