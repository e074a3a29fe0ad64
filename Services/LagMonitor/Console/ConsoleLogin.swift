import Audit
import Essentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Identity
import Logging
import Postgres
import Tenants

/// Signs operators in at their OpenID provider: authorization code flow with PKCE, `state` and `nonce`.
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

    /// The reason why a sign-in failed.
    private enum SignInFailure: Error {
        /// This browser did not start the sign-in, or it has expired.
        case unexpected
        case provider(String)
        case notAdministrator(String)
    }

    /// Redirects the browser to the provider.
    @concurrent func begin() async -> Response {
        do {
            let metadata = try await providers.metadata(of: settings.issuer, at: nil)
            let request = AuthorizationRequest()
            let url = request.url(as: settings.client.id, scopes: settings.scopes, at: metadata, redirect: redirect)
            return Response(
                status: .seeOther,
                headers: [.location: url, .setCookie: cookies.begin(request), .cacheControl: "no-store"])
        } catch {
            logger.warning("operators' identity provider unavailable", metadata: ["error": "\(error)"])
            return ConsolePage.notice(.serviceUnavailable, "The identity provider is unavailable at the moment.")
        }
    }

    /// Handles the provider's redirect.
    @concurrent func finish(_ request: Request, from client: String) async throws -> Response {
        do {
            return try await signIn(request, from: client)
        } catch let problem as Problem {
            // Without an audit record there is no session.
            var response = ConsolePage.notice(problem.status, problem.detail ?? "Retry later.")
            response.headers[values: .setCookie] = [cookies.endLogin]
            return response
        }
    }

    private func signIn(_ request: Request, from client: String) async throws -> Response {
        do {
            let (identity, idToken) = try await identity(request)
            guard let email = identity.email else { throw SignInFailure.provider("no e-mail address") }
            let isAdministrator = AdministratorRule.isAdministrator(
                email: email, claims: VerifiedClaims(idToken).values(of:), among: settings.administrators)
            guard isAdministrator else { throw SignInFailure.notAdministrator(email) }
            try await audit(.consoleOpened, email, from: client)
            let id = sessions.create(email)
            var response = Response(status: .seeOther, headers: [.location: "/", .cacheControl: "no-store"])
            response.headers[values: .setCookie] = [
                cookies.endLogin, cookies.begin(id, seconds: settings.sessionMax.components.seconds),
            ]
            return response
        } catch let failure as SignInFailure {
            return try await response(to: failure, from: client)
        } catch let failure as ProviderFailure {
            return try await response(to: .provider("\(failure)"), from: client)
        } catch let error as TokenError {
            return try await response(to: .provider("\(error)"), from: client)
        }
    }

    private func identity(_ request: Request) async throws -> (Tenants.Identity, idToken: String) {
        guard let started = cookies.login(in: request.headers), let fields = FormFields(request.uri.query ?? ""),
            fields["state"] == started.state
        else { throw SignInFailure.unexpected }
        let metadata = try await providers.metadata(of: settings.issuer, at: nil)
        let response = AuthorizationResponse(fields, issuer: settings.issuer, namesIssuer: metadata.namesIssuer)
        guard case .code(let code) = response else { throw SignInFailure.provider("\(response)") }
        let tokens = try await provider.exchange(
            code, verifier: started.verifier, redirect: redirect, as: settings.client, at: metadata)
        guard let idToken = tokens.idToken else { throw SignInFailure.provider("no ID token") }
        let accepted = EnvironmentIdentity(
            environment: 0, issuer: settings.issuer, audience: settings.client.id, jwksURL: metadata.jwksURL,
            addressVerification: settings.domains.isEmpty ? .emailVerified : .issuer, domains: Set(settings.domains))
        let identity = try await verifier.identity(of: idToken, among: [accepted])
        if let claim = AuthorizationRequest.objection(to: identity, nonce: started.nonce, client: settings.client.id) {
            throw SignInFailure.provider(claim)
        }
        return (identity, idToken)
    }

    private func response(to failure: SignInFailure, from client: String) async throws -> Response {
        var response: Response
        switch failure {
        case .unexpected:
            response = ConsolePage.notice(
                .badRequest, "This browser did not start the sign-in, or it has expired. Start again.")
        case .provider(let reason):
            // External input: truncated, and only for the log.
            logger.info("console sign-in failed", metadata: ["reason": "\(reason.prefix(scalars: 300))"])
            response = ConsolePage.notice(.forbidden, "The sign-in failed. See the log of lag-monitor.")
        case .notAdministrator(let email):
            try await audit(.consoleRefused, email, from: client)
            response = ConsolePage.notice(.forbidden, "You are signed in, but not an administrator.")
        }
        response.headers[values: .setCookie] = [cookies.endLogin]
        return response
    }

    private func audit(_ action: AuditRecord.Action, _ email: String, from client: String) async throws {
        let administrator = Administrator(actor: "console:\(email)", address: client)
        try await database.run { connection in _ = try connection.run(administrator.audit(action, email, in: nil)) }
    }
}
