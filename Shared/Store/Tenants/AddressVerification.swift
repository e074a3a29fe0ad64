/// The evidence that the e-mail address in a token belongs to its person.
package enum AddressVerification: String, Sendable, CaseIterable {
    /// The token's `email_verified` (OpenID Connect Core 1.0 §5.1).
    case emailVerified = "email_verified"
    /// The token's `xms_edov`, an optional claim of Microsoft Entra ID: the owner of the address's domain is verified.
    case domainVerified = "xms_edov"
    /// The issuer itself, for addresses in the environment's own domains: a tenant of Microsoft Entra ID, whose
    /// administrators assign the addresses.
    case issuer
}
