
/// Who a token speaks for.
package struct Identity: Sendable, Equatable {
    package let environment: Int32
    package let issuer: String
    package let subject: String
    /// Its ASCII letters lowered, vouched for as the environment asks; `nil` in a program's token.
    package let email: String?
    package let name: String?
    /// Seconds since 1970.
    package let expires: Int64
    /// What a program's token calls the program: its client id, or else its subject; `nil` in a person's token.
    package var client: String? = nil
    /// What an ID token repeats of its authentication request (OpenID Connect Core 1.0 §2).
    package var nonce: String? = nil
    /// The client a token was issued to (`azp`), when it says so.
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
