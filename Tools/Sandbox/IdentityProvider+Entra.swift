import Crypto
import Essentials
import FoundationEssentials
import HTTPServer
import Hummingbird

/// Issuers in the form of Microsoft Entra ID: those below the provider whose path is a tenant's id (a UUID).
///
/// Their documents, endpoints and tokens follow Microsoft's documentation ("OpenID Connect on the Microsoft identity
/// platform", "ID token claims reference", "Optional claims reference"): the issuer is `…/{tenant}/v2.0`, the response
/// of a login has no issuer, tokens cannot be revoked, the access token has another audience, and no token has
/// `email_verified`.
extension IdentityProvider {
    /// Microsoft Graph, the audience of access tokens unless an application requests another resource.
    private static let graph = "00000003-0000-0000-c000-000000000000"

    static func isTenant(_ environment: String?) -> Bool {
        environment.flatMap { UUID(uuidString: $0) } != nil
    }

    /// The tenant that an issuer of this provider is.
    func tenant(ofIssuer text: String) -> String? {
        guard text.hasPrefix(issuer + "/"), text.hasSuffix("/v2.0") else { return nil }
        let tenant = String(text.dropFirst(issuer.count + 1).dropLast("/v2.0".count))
        return Self.isTenant(tenant) ? tenant : nil
    }

    func addEntraRoutes(to router: Router<BasicRequestContext>) {
        router.get("{environment}/v2.0/.well-known/openid-configuration") { _, context in
            try json(EntraDiscovery(base: issuer, tenant: try tenant(in: context)))
        }
        router.get("{environment}/discovery/v2.0/keys") { _, context in
            _ = try tenant(in: context)
            return try json(["keys": try await keys.publicKeys()])
        }
        router.get("{environment}/oauth2/v2.0/authorize") { request, context in
            authorize(request, environment: try tenant(in: context))
        }
        router.post("{environment}/oauth2/v2.0/token") { request, context in
            try await giveToken(request, environment: try tenant(in: context))
        }
    }

    private func tenant(in context: BasicRequestContext) throws -> String {
        guard let tenant = context.parameters.get("environment"), Self.isTenant(tenant) else {
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

    /// Its access token: a JWT, but not one for Fieldpost.
    func entraAccess(_ claims: IdentityClaims) -> IdentityClaims {
        var claims = claims
        claims.aud = Self.graph
        return claims
    }
}

/// The document of a tenant of Microsoft Entra ID.
struct EntraDiscovery: Encodable {
    let issuer: String
    let authorization_endpoint: String
    let token_endpoint: String
    let jwks_uri: String
    let token_endpoint_auth_methods_supported = ["client_secret_post", "private_key_jwt", "client_secret_basic"]
    let response_types_supported = ["code", "id_token", "code id_token", "id_token token"]
    let subject_types_supported = ["pairwise"]
    let id_token_signing_alg_values_supported = ["RS256"]
    let scopes_supported = ["openid", "profile", "email", "offline_access"]

    init(base: String, tenant: String) {
        issuer = "\(base)/\(tenant)/v2.0"
        authorization_endpoint = "\(base)/\(tenant)/oauth2/v2.0/authorize"
        token_endpoint = "\(base)/\(tenant)/oauth2/v2.0/token"
        jwks_uri = "\(base)/\(tenant)/discovery/v2.0/keys"
    }
}
