import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Model
import NIOCore

/// The authorization endpoint (RFC 6749 §4.1, RFC 7636, OpenID Connect Core 1.0 §3.1.2).
extension IdentityProvider {
    private static let loginSeconds: Int64 = 600
    private static let codeSeconds: Int64 = 60

    func authorize(_ request: Request, environment: String?) -> Response {
        guard let fields = FormFields(request.uri.query ?? "") else {
            return IdentityPages.problem("The request cannot be read.")
        }
        // Redirects only lead to the client's own addresses.
        guard let client = fields["client_id"].flatMap(state.client) else {
            return IdentityPages.problem("The application is not known here.")
        }
        guard let redirect = fields["redirect_uri"], client.redirectURIs?.contains(redirect) == true else {
            return IdentityPages.problem("The application does not live at the address it names.")
        }
        let scope = Set((fields["scope"] ?? "").split(separator: " ").map(String.init))
        let login = IdentityState.Login(
            issuer: issuer(of: environment), client: client.id, redirectURI: redirect, scope: scope,
            state: fields["state"], nonce: fields["nonce"], challenge: fields["code_challenge"],
            expires: IdentityState.clock + Self.loginSeconds)
        guard fields["response_type"] == "code" else { return back(login, error: "unsupported_response_type") }
        guard scope.contains("openid") else { return back(login, error: "invalid_scope") }
        if login.challenge != nil, fields["code_challenge_method"] != "S256" {
            return back(login, error: "invalid_request", description: "code_challenge_method must be S256")
        }
        if state.switches.failure == .serverError, "authorize".contains(state.switches.failureAt ?? "authorize") {
            return back(login, error: "server_error", description: "by the switches")
        }
        if fields["prompt"] == "none" { return back(login, error: "login_required") }
        return IdentityPages.login(
            state.keep(login, as: .login), action: path("login", environment), hint: fields["login_hint"] ?? "")
    }

    func logIn(_ request: Request, environment: String?) async throws -> Response {
        let fields = try await form(request)
        guard let transaction = fields["transaction"], var login = state.find(transaction, as: .login) else {
            return IdentityPages.problem("This login has expired. Begin again.")
        }
        let email = fields["email"] ?? ""
        guard state.isRight(fields["password"] ?? "", of: email) else {
            return IdentityPages.login(
                transaction, action: path("login", environment), hint: email,
                problem: "The e-mail address or the password is wrong.")
        }
        _ = state.take(transaction, as: .login)
        login.email = email
        return IdentityPages.consent(
            state.keep(login, as: .login), action: path("consent", environment), client: login.client, email: email)
    }

    func consent(_ request: Request) async throws -> Response {
        let fields = try await form(request)
        guard let login = fields["transaction"].flatMap({ state.take($0, as: .login) }), login.email != nil else {
            return IdentityPages.problem("This login has expired. Begin again.")
        }
        guard fields["decision"] == "allow" else {
            return back(login, error: "access_denied", description: "the person refused")
        }
        return allow(login)
    }

    private func allow(_ login: IdentityState.Login) -> Response {
        var granted = login
        granted.expires = IdentityState.clock + Self.codeSeconds
        return back(login, [("code", state.keep(granted, as: .code))])
    }

    private func back(_ login: IdentityState.Login, error: String, description: String? = nil) -> Response {
        back(login, [("error", error)] + (description.map { [("error_description", $0)] } ?? []))
    }

    /// Sends the browser back to the application (RFC 6749 §4.1.2), naming the issuer (RFC 9207) unless it has
    /// the shape of Entra's.
    private func back(_ login: IdentityState.Login, _ parameters: [(String, String)]) -> Response {
        var fields = FormFields()
        for (name, value) in parameters { fields.add(name, value) }
        if let state = login.state { fields.add("state", state) }
        if tenant(ofIssuer: login.issuer) == nil { fields.add("iss", login.issuer) }
        let separator = login.redirectURI.contains("?") ? "&" : "?"
        return Response(
            status: .seeOther,
            headers: [.location: login.redirectURI + separator + fields.encoded, .cacheControl: "no-store"])
    }

    private func path(_ name: String, _ environment: String?) -> String {
        environment.map { "/\($0)/\(name)" } ?? "/\(name)"
    }

    func form(_ request: Request) async throws -> FormFields {
        let type = request.headers[.contentType]?.split(separator: ";").first.map(String.init) ?? ""
        guard type == "application/x-www-form-urlencoded" else { throw Problem(.unsupportedMediaType) }
        let body = try await request.body.collect(upTo: 65_536)
        guard let fields = FormFields(String(buffer: body)) else { throw Problem(.badRequest) }
        return fields
    }
}
