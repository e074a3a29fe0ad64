/// The identity that a verified token asserts.
package struct Identity: Sendable, Equatable {
    package let environment: Int32
    package let issuer: String
    package let subject: String
    /// Verified as the environment requires, with ASCII letters in lower case; `nil` in a program's token.
    package let email: String?
    package let name: String?
    /// Seconds since 1970.
    package let expires: Int64
    /// A program's client id, otherwise its subject; `nil` in a person's token.
    package var client: String? = nil
    /// The nonce of the authentication request, repeated in an ID token (OpenID Connect Core 1.0 §2).
    package var nonce: String? = nil
    /// The client that a token was issued to (`azp`), if present.
    package var authorizedParty: String? = nil

    package init(
        environment: Int32, issuer: String, subject: String, email: String?, name: String?, expires: Int64,
        client: String? = nil, nonce: String? = nil, authorizedParty: String? = nil
    ) {
        self.environment = environment
        self.issuer = issuer
        self.subject = subject
        self.email = email
        self.name = name
        self.expires = expires
        self.client = client
        self.nonce = nonce
        self.authorizedParty = authorizedParty
    }
}

/// The identity provider and audience whose tokens an environment accepts.
package struct EnvironmentIdentity: Sendable, Equatable {
    package let environment: Int32
    /// Compared byte by byte with the token's `iss`.
    package let issuer: String
    package let audience: String
    package let jwksURL: String
    /// The source of trust in a token's e-mail address.
    package let addressVerification: AddressVerification
    /// The environment's e-mail domains, for which the issuer asserts addresses; empty unless `addressVerification` is
    /// ``AddressVerification/issuer``.
    package let domains: Set<String>

    package init(
        environment: Int32, issuer: String, audience: String, jwksURL: String,
        addressVerification: AddressVerification = .emailVerified, domains: Set<String> = []
    ) {
        self.environment = environment
        self.issuer = issuer
        self.audience = audience
        self.jwksURL = jwksURL
        self.addressVerification = addressVerification
        self.domains = addressVerification == .issuer ? domains : []
    }
}
