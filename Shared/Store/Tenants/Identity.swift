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
