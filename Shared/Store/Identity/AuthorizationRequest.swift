import Crypto
package import Essentials
import FoundationEssentials
package import Tenants

/// An OpenID Connect authentication request (authorization code flow with PKCE) and the values that bind its response.
package struct AuthorizationRequest: Sendable, Equatable {
    /// Binds the provider's response to the browser that sent the request (RFC 6749 §10.12).
    package let state: String
    /// Binds the ID token to this request (OpenID Connect Core 1.0 §3.1.2.1).
    package let nonce: String
    /// Binds the code to the client that requested it (PKCE, RFC 7636).
    package let verifier: String

    /// - Parameters: 43 characters of base64url each.
    package init(state: String, nonce: String, verifier: String) {
        (self.state, self.nonce, self.verifier) = (state, nonce, verifier)
    }

    /// Creates a request with 256 random bits for each value.
    package init() {
        self.init(
            state: Base64URL.random(byteCount: 32), nonce: Base64URL.random(byteCount: 32),
            verifier: Base64URL.random(byteCount: 32))
    }

    /// Returns the URL of the provider's login page for this request.
    ///
    /// - Parameter hint: The `login_hint`: the address of the person who is expected to log in.
    package func url(
        as client: String, scopes: [String], at metadata: ProviderMetadata, redirect: String, hint: String? = nil
    ) -> String {
        var fields = FormFields()
        fields.add("response_type", "code")
        fields.add("client_id", client)
        fields.add("redirect_uri", redirect)
        fields.add("scope", scopes.joined(separator: " "))
        fields.add("state", state)
        fields.add("nonce", nonce)
        fields.add("code_challenge", Base64URL.text(Array(SHA256.hash(data: Array(verifier.utf8)))))
        fields.add("code_challenge_method", "S256")
        if let hint { fields.add("login_hint", hint) }
        let endpoint = metadata.authorizationEndpoint
        return endpoint + (endpoint.contains("?") ? "&" : "?") + fields.encoded
    }

    /// Returns the claim that ties a verified ID token to another login (OpenID Connect Core 1.0 §3.1.3.7).
    ///
    /// - Parameter identity: From a token whose signature, issuer, audience and times are valid.
    /// - Returns: `nil` if the token belongs to the login with this nonce.
    package static func objection(to identity: Tenants.Identity, nonce: String, client: String) -> String? {
        guard identity.nonce == nonce else { return "nonce" }
        if let party = identity.authorizedParty, party != client { return "azp" }
        return nil
    }
}

/// The authorization response that a browser carries from a provider (RFC 6749 §4.1.2, RFC 9207).
package enum AuthorizationResponse: Equatable, Sendable {
    case code(String)
    /// The response names another issuer, or none.
    case otherIssuer(String?)
    /// The provider's error code, unauthenticated: it passed through the browser.
    case refused(String)
    case noCode

    private static let codeBytesMax = 2_048

    /// - Parameter namesIssuer: Whether the provider declares that its responses carry `iss`.
    package init(_ fields: FormFields, issuer: String, namesIssuer: Bool) {
        let isNamed = namesIssuer || fields.items.contains { $0.name == "iss" }
        if isNamed, fields["iss"] != issuer {
            self = .otherIssuer(fields["iss"])
        } else if let error = fields["error"] {
            self = .refused(error)
        } else if let code = fields["code"], !code.isEmpty, code.utf8.count <= Self.codeBytesMax {
            self = .code(code)
        } else {
            self = .noCode
        }
    }
}
