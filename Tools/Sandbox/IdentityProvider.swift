import Crypto
import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import JWTKit

/// The claims of the emulator's tokens (OpenID Connect Core 1.0 §2 and §5.1).
struct IdentityClaims: JWTPayload {
    var iss: String
    var sub: String
    var aud: String
    var exp: Int
    var iat: Int
    var email: String?
    var emailVerified: Bool?
    var name: String?
    var nonce: String?
    var authTime: Int?
    var roles: [String]?
    var authorizedParty: String?
    /// This and what follows are of Microsoft Entra ID alone.
    var ver: String?
    var oid: String?
    var tid: String?
    var idp: String?
    var preferredUsername: String?
    var edov: Bool?

    enum CodingKeys: String, CodingKey {
        case iss, sub, aud, exp, iat, email, name, nonce, roles, ver, oid, tid, idp
        case preferredUsername = "preferred_username"
        case edov = "xms_edov"
        case emailVerified = "email_verified"
        case authTime = "auth_time"
        case authorizedParty = "azp"
    }

    /// The sandbox only signs.
    func verify(using algorithm: some JWTAlgorithm) {}
}

/// The parameters of a token request.
struct TokenRequest: Decodable, Sendable {
    var email: String
    var name: String?
    /// The e-mail address unless given.
    var subject: String?
    var audience: String?
    /// Seconds; negative gives an expired token.
    var expiresIn: Int?
    var emailVerified: Bool?
    /// The path of the issuer below the provider's own: one provider stands for many environments' ones.
    var environment: String?
    /// `ES256` unless given.
    var algorithm: String?
}

/// An OpenID provider with a login page, which also issues tokens to every caller.
struct IdentityProvider: Sendable {
    static let tokenSecondsDefault = 3600
    static let bulkCountMax = 10_000

    let issuer: String
    let audience: String
    let keys: IdentityKeys
    var state = IdentityState(password: "sandbox")

    @Sendable func addRoutes(to router: Router<EdgeContext>) {
        router.add(middleware: IdentityFailures(state: state))
        // An environment's issuer has the same documents below its own path.
        for prefix in ["", "{environment}/"] {
            router.get("\(prefix).well-known/openid-configuration") { _, context in try discovery(context.environment) }
            router.get("\(prefix)jwks") { _, _ in try Response.json(["keys": try await keys.publicKeys()]) }
            router.get("\(prefix)authorize") { request, context in authorize(request, in: context.environment) }
            router.post("\(prefix)login") { request, context in try await logIn(request, in: context.environment) }
            router.post("\(prefix)consent") { request, _ in try await consent(request) }
            router.post("\(prefix)token") { request, context in try await giveToken(request, in: context.environment) }
            router.post("\(prefix)revoke") { request, _ in try await revoke(request) }
        }
        addEntraRoutes(to: router)
        addControls(to: router)
    }

    /// The control routes of tests and the demo.
    private func addControls(to router: Router<EdgeContext>) {
        router.post("sandbox/switches") { request, _ in
            state.switches = try await decode(IdentitySwitches.self, request)
            return try Response.json(state.switches)
        }
        router.post("sandbox/clients") { request, _ in
            state.add(try await decode(IdentityClient.self, request))
            return Response(status: .noContent)
        }
        router.post("sandbox/people") { request, _ in
            state.add(try await decode(IdentityPerson.self, request))
            return Response(status: .noContent)
        }
        router.post("sandbox/rotate") { _, _ in
            try await keys.rotate()
            return try Response.json(["keys": try await keys.publicKeys()])
        }
        router.post("sandbox/token") { request, _ in
            let token = try await token(for: try await decode(TokenRequest.self, request))
            return try Response.json(["access_token": token, "token_type": "Bearer"])
        }
        router.post("sandbox/tokens") { request, _ in
            let requests = try await decode([TokenRequest].self, request)
            guard requests.count <= Self.bulkCountMax else {
                throw Problem(.contentTooLarge, detail: "At most \(Self.bulkCountMax) tokens are given at once.")
            }
            var tokens: [String] = []
            for request in requests { tokens.append(try await token(for: request)) }
            return try Response.json(tokens)
        }
    }

    func token(for request: TokenRequest) async throws -> String {
        let now = state.now
        var claims: IdentityClaims
        if let tenant = request.environment, Self.isTenant(tenant) {
            claims = entraClaims(tenant, request.email, client: request.audience ?? audience)
            claims.sub = request.subject ?? claims.sub
        } else {
            claims = IdentityClaims(
                iss: issuer(of: request.environment), sub: request.subject ?? request.email,
                aud: request.audience ?? audience, exp: now, iat: now, email: request.email,
                emailVerified: request.emailVerified ?? true)
        }
        claims.name = request.name
        claims.exp = now + (request.expiresIn ?? Self.tokenSecondsDefault)
        do {
            return try await keys.sign(claims, with: request.algorithm ?? "ES256")
        } catch let problem as EmulatorError {
            throw Problem(.badRequest, detail: problem.description)
        }
    }

    private func discovery(_ environment: String?) throws -> Response {
        if let environment, Self.isTenant(environment) { return try entraDiscovery(environment) }
        let issuer = issuer(of: environment)
        return try .json(
            Discovery(
                issuer: issuer, jwks_uri: issuer + "/jwks", authorization_endpoint: issuer + "/authorize",
                token_endpoint: issuer + "/token",
                revocation_endpoint: state.switches.hidesRevocation == true ? nil : issuer + "/revoke",
                scopes_supported: ["openid", "email", "profile", "offline_access"],
                grant_types_supported: ["authorization_code", "refresh_token", "client_credentials"],
                code_challenge_methods_supported: ["S256"],
                token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
                authorization_response_iss_parameter_supported: true, response_types_supported: ["code"],
                subject_types_supported: ["public"], id_token_signing_alg_values_supported: ["ES256", "RS256"]))
    }

    func issuer(of environment: String?) -> String {
        guard let environment else { return issuer }
        return "\(issuer)/\(environment)" + (Self.isTenant(environment) ? "/v2.0" : "")
    }

    private func decode<T: Decodable>(_ type: T.Type, _ request: Request) async throws -> T {
        let data = try await request.data()
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch {
            throw Problem(.badRequest, detail: "The body is not what this path takes: \(error)")
        }
    }
}

/// Issuers in the form of Microsoft Entra ID: those below the provider whose path is a tenant's id (a UUID).
///
/// Their documents, endpoints and tokens follow Microsoft's documentation ("OpenID Connect on the Microsoft identity
/// platform", "ID token claims reference", "Optional claims reference"): the issuer is `…/{tenant}/v2.0`, the response
/// of a login has no issuer, tokens cannot be revoked, the access token has another audience, and no token has
/// `email_verified`.
extension IdentityProvider {
    /// Microsoft Graph, the audience of access tokens unless an application requests another resource.
    static let graph = "00000003-0000-0000-c000-000000000000"

    static func isTenant(_ environment: String?) -> Bool {
        environment.flatMap { UUID(uuidString: $0) } != nil
    }

    /// The tenant that an issuer of this provider is.
    func tenant(ofIssuer text: String) -> String? {
        guard text.hasPrefix(issuer + "/"), text.hasSuffix("/v2.0") else { return nil }
        let tenant = String(text.dropFirst(issuer.count + 1).dropLast("/v2.0".count))
        return Self.isTenant(tenant) ? tenant : nil
    }

    func addEntraRoutes(to router: Router<EdgeContext>) {
        router.get("{environment}/v2.0/.well-known/openid-configuration") { _, context in
            try entraDiscovery(try tenant(in: context))
        }
        router.get("{environment}/discovery/v2.0/keys") { _, context in
            _ = try tenant(in: context)
            return try Response.json(["keys": try await keys.publicKeys()])
        }
        router.get("{environment}/oauth2/v2.0/authorize") { request, context in
            authorize(request, in: try tenant(in: context))
        }
        router.post("{environment}/oauth2/v2.0/token") { request, context in
            try await giveToken(request, in: try tenant(in: context))
        }
    }

    private func entraDiscovery(_ tenant: String) throws -> Response {
        let base = "\(issuer)/\(tenant)"
        return try .json(
            Discovery(
                issuer: "\(base)/v2.0", jwks_uri: "\(base)/discovery/v2.0/keys",
                authorization_endpoint: "\(base)/oauth2/v2.0/authorize",
                token_endpoint: "\(base)/oauth2/v2.0/token",
                scopes_supported: ["openid", "profile", "email", "offline_access"],
                token_endpoint_auth_methods_supported: [
                    "client_secret_post", "private_key_jwt", "client_secret_basic",
                ],
                response_types_supported: ["code", "id_token", "code id_token", "id_token token"],
                subject_types_supported: ["pairwise"], id_token_signing_alg_values_supported: ["RS256"]))
    }

    private func tenant(in context: EdgeContext) throws -> String {
        guard let tenant = context.environment, Self.isTenant(tenant) else {
            throw Problem(.notFound, detail: "There is no such tenant.")
        }
        return tenant
    }

    /// The claims of an ID token about a login name.
    func entraClaims(_ tenant: String, _ name: String, client: String) -> IdentityClaims {
        let (name, person) = (name.lowercased(), state.person(name))
        // A person has another subject in each application.
        let subject = Array(SHA256.hash(data: Array("\(tenant) \(name) \(client)".utf8)))
        var claims = IdentityClaims(
            iss: issuer(of: tenant), sub: person?.subject ?? Base64URL.text(subject), aud: client,
            exp: state.now + Self.tokenSecondsDefault, iat: state.now, email: person?.tokenEmail, emailVerified: nil,
            name: person?.name)
        claims.ver = "2.0"
        claims.oid = UUID(uuidString: tenant).map { UUID(name: name, in: $0).text }
        claims.tid = person?.tenant ?? tenant
        claims.preferredUsername = person?.preferredUsername ?? name
        claims.edov = person?.edov
        claims.idp = person?.provider
        return claims
    }
}

/// Injects the failures of the switches: unavailability and delays. Control routes always work.
struct IdentityFailures: RouterMiddleware {
    typealias Context = EdgeContext

    let state: IdentityState

    @concurrent func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let switches = state.switches
        let path = request.uri.path
        guard !path.hasPrefix("/sandbox/"), path.contains(switches.failureAt ?? "/") else {
            return try await next(request, context)
        }
        switch switches.failure ?? .none {
        case .none, .serverError: break
        case .down: throw Problem(.serviceUnavailable, detail: "By the switches.")
        case .slow: try await Task.sleep(for: .milliseconds(switches.slowMilliseconds ?? 30_000))
        case .held: while state.switches.failure == .held { try await Task.sleep(for: .milliseconds(5)) }
        }
        return try await next(request, context)
    }
}

extension EdgeContext {
    fileprivate var environment: String? { parameters.get("environment") }
}

/// The document of an issuer (OpenID Connect Discovery 1.0 §3).
private struct Discovery: Encodable {
    let issuer, jwks_uri, authorization_endpoint, token_endpoint: String
    var revocation_endpoint: String?
    let scopes_supported: [String]
    var grant_types_supported: [String]?
    var code_challenge_methods_supported: [String]?
    let token_endpoint_auth_methods_supported: [String]
    var authorization_response_iss_parameter_supported: Bool?
    let response_types_supported, subject_types_supported, id_token_signing_alg_values_supported: [String]
}
