import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import JWTKit
import NIOCore

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

    @Sendable func addRoutes(to router: Router<BasicRequestContext>) {
        router.add(middleware: IdentityFailures(state: state))
        // An environment's issuer has the same documents below its own path.
        for prefix in ["", "{environment}/"] {
            router.get("\(prefix).well-known/openid-configuration") { _, context in
                try discovery(context.parameters.get("environment"))
            }
            router.get("\(prefix)jwks") { _, _ in try json(["keys": try await keys.publicKeys()]) }
            router.get("\(prefix)authorize") { request, context in
                authorize(request, environment: context.parameters.get("environment"))
            }
            router.post("\(prefix)login") { request, context in
                try await logIn(request, environment: context.parameters.get("environment"))
            }
            router.post("\(prefix)consent") { request, _ in try await consent(request) }
            router.post("\(prefix)token") { request, context in
                try await giveToken(request, environment: context.parameters.get("environment"))
            }
            router.post("\(prefix)revoke") { request, _ in try await revoke(request) }
        }
        addEntraRoutes(to: router)
        addControls(to: router)
    }

    /// The control routes of tests and the demo.
    private func addControls(to router: Router<BasicRequestContext>) {
        router.post("sandbox/switches") { request, _ in
            state.switches = try await decode(IdentitySwitches.self, request)
            return try json(state.switches)
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
            return try json(["keys": try await keys.publicKeys()])
        }
        router.post("sandbox/token") { request, _ in
            let token = try await token(for: try await decode(TokenRequest.self, request))
            return try json(["access_token": token, "token_type": "Bearer"])
        }
        router.post("sandbox/tokens") { request, _ in
            let requests = try await decode([TokenRequest].self, request)
            guard requests.count <= Self.bulkCountMax else {
                throw Problem(.contentTooLarge, detail: "At most \(Self.bulkCountMax) tokens are given at once.")
            }
            var tokens: [String] = []
            for request in requests { tokens.append(try await token(for: request)) }
            return try json(tokens)
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
        if let environment, Self.isTenant(environment) {
            return try json(EntraDiscovery(base: issuer, tenant: environment))
        }
        return try json(
            Discovery(issuer: issuer(of: environment), hasRevocation: state.switches.hidesRevocation != true))
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

    func json(_ value: some Encodable) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try encoder.encode(value))))
    }
}

/// OpenID Connect Discovery 1.0 §3.
private struct Discovery: Encodable {
    let issuer: String
    let jwks_uri: String
    let authorization_endpoint: String
    let token_endpoint: String
    let revocation_endpoint: String?
    let scopes_supported = ["openid", "email", "profile", "offline_access"]
    let grant_types_supported = ["authorization_code", "refresh_token", "client_credentials"]
    let code_challenge_methods_supported = ["S256"]
    let token_endpoint_auth_methods_supported = ["client_secret_basic", "client_secret_post"]
    let authorization_response_iss_parameter_supported = true
    let response_types_supported = ["code"]
    let subject_types_supported = ["public"]
    let id_token_signing_alg_values_supported = ["ES256", "RS256"]

    init(issuer: String, hasRevocation: Bool) {
        self.issuer = issuer
        jwks_uri = issuer + "/jwks"
        authorization_endpoint = issuer + "/authorize"
        token_endpoint = issuer + "/token"
        revocation_endpoint = hasRevocation ? issuer + "/revoke" : nil
    }
}
