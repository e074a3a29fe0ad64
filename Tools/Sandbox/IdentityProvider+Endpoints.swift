import Crypto
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

    func authorize(_ request: Request, in environment: String?) -> Response {
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

    func logIn(_ request: Request, in environment: String?) async throws -> Response {
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

/// The token endpoint (RFC 6749 §4.1.3, §4.4, §6; RFC 7636 §4.6; OpenID Connect Core 1.0 §3.1.3).
extension IdentityProvider {
    /// An error of RFC 6749 §5.2.
    struct TokenFailure: Error {
        let code: String
        var description: String?
        var status = HTTPResponse.Status.badRequest
    }

    private struct TokenResponse: Encodable {
        let access_token: String
        var token_type = "Bearer"
        let expires_in: Int
        var scope: String?
        var id_token: String?
        var refresh_token: String?
    }

    func giveToken(_ request: Request, in environment: String?) async throws -> Response {
        do {
            if state.switches.failure == .serverError { throw TokenFailure(code: "server_error") }
            let fields = try await form(request)
            let client = try authenticate(request, fields)
            return switch fields["grant_type"] {
            case "authorization_code": try .json(try await exchange(fields, client))
            case "refresh_token": try .json(try await refresh(fields, client))
            case "client_credentials": try .json(try await own(client, issuer(of: environment)))
            default: throw TokenFailure(code: "unsupported_grant_type")
            }
        } catch let failure as TokenFailure {
            let description = failure.description ?? failure.code
            var response = try Response.json(["error": failure.code, "error_description": description])
            response.status = failure.status
            if failure.status == .unauthorized { response.headers[.wwwAuthenticate] = "Basic realm=\"token\"" }
            return response
        }
    }

    /// Revokes a refresh token (RFC 7009); the response does not depend on whether it existed.
    func revoke(_ request: Request) async throws -> Response {
        let fields = try await form(request)
        do { _ = try authenticate(request, fields) } catch { return Response(status: .unauthorized) }
        if let token = fields["token"] { _ = state.take(token, as: .refreshToken) }
        return Response(status: .ok)
    }

    private func exchange(_ fields: FormFields, _ client: IdentityClient) async throws -> TokenResponse {
        guard let code = fields["code"], let login = state.take(code, as: .code), login.client == client.id,
            login.redirectURI == fields["redirect_uri"]
        else { throw TokenFailure(code: "invalid_grant", description: "the code is not valid") }
        if let challenge = login.challenge {
            let verifier = fields["code_verifier"] ?? ""
            guard Base64URL.text(Array(SHA256.hash(data: Array(verifier.utf8)))) == challenge else {
                throw TokenFailure(code: "invalid_grant", description: "the code verifier does not match")
            }
        }
        return try await answer(login)
    }

    private func refresh(_ fields: FormFields, _ client: IdentityClient) async throws -> TokenResponse {
        guard let login = fields["refresh_token"].flatMap({ state.take($0, as: .refreshToken) }),
            login.client == client.id
        else { throw TokenFailure(code: "invalid_grant", description: "the refresh token is not valid") }
        return try await answer(login)
    }

    private func answer(_ login: IdentityState.Login) async throws -> TokenResponse {
        var (claims, access) = self.claims(of: login)
        claims.nonce = login.nonce
        let algorithm = claims.ver == nil ? "ES256" : "RS256"
        var refreshed = login
        (refreshed.state, refreshed.nonce, refreshed.challenge) = (nil, nil, nil)
        refreshed.expires = IdentityState.clock + 30 * 86_400
        let refreshToken = login.scope.contains("offline_access") ? state.keep(refreshed, as: .refreshToken) : nil
        return TokenResponse(
            access_token: try await keys.sign(access, with: algorithm), expires_in: Self.tokenSecondsDefault,
            scope: login.scope.sorted().joined(separator: " "), id_token: try await keys.sign(claims, with: algorithm),
            refresh_token: refreshToken)
    }

    /// The claims of the ID token, and of the access token.
    private func claims(of login: IdentityState.Login) -> (IdentityClaims, IdentityClaims) {
        let email = login.email ?? ""
        if let tenant = tenant(ofIssuer: login.issuer) {
            let claims = entraClaims(tenant, email, client: login.client)
            var access = claims
            access.aud = Self.graph
            return (claims, access)
        }
        let person = state.person(email)
        let access = IdentityClaims(
            iss: login.issuer, sub: person?.subject ?? email.lowercased(), aud: audience,
            exp: state.now + Self.tokenSecondsDefault, iat: state.now, email: person?.tokenEmail ?? email,
            emailVerified: person?.emailVerified ?? true, name: person?.name)
        var claims = access
        claims.aud = login.client
        claims.authTime = state.now
        return (claims, access)
    }

    /// A token of the application itself.
    private func own(_ client: IdentityClient, _ issuer: String) async throws -> TokenResponse {
        guard let roles = client.roles, !roles.isEmpty else { throw TokenFailure(code: "unauthorized_client") }
        var claims = IdentityClaims(
            iss: issuer, sub: client.id, aud: audience, exp: state.now + Self.tokenSecondsDefault, iat: state.now)
        claims.roles = roles
        claims.authorizedParty = client.id
        return TokenResponse(
            access_token: try await keys.sign(claims, with: "ES256"), expires_in: Self.tokenSecondsDefault)
    }

    /// `client_secret_basic`, or `client_secret_post` (RFC 6749 §2.3.1).
    private func authenticate(_ request: Request, _ fields: FormFields) throws -> IdentityClient {
        var (id, secret) = (fields["client_id"], fields["client_secret"])
        if let header = request.headers[.authorization] {
            let text = header.hasPrefix("Basic ") ? Data(base64Encoded: String(header.dropFirst(6))) : nil
            let parts = text.map { String(decoding: $0, as: UTF8.self) }?.split(separator: ":", maxSplits: 1) ?? []
            // Both were form-encoded before they were joined.
            let decoded = parts.compactMap { FormFields("v=\($0)")?["v"] }
            guard decoded.count == 2, id == nil || id == decoded[0] else {
                throw TokenFailure(code: "invalid_client", status: .unauthorized)
            }
            (id, secret) = (decoded[0], decoded[1])
        }
        guard let client = id.flatMap(state.client), client.secret == secret else {
            throw TokenFailure(code: "invalid_client", status: .unauthorized)
        }
        return client
    }
}
