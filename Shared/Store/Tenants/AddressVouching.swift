/// What says that the address in a token is its person's own, so that the person may come in with it.
package enum AddressVouching: String, Sendable, CaseIterable {
    /// The token's `email_verified` (OpenID Connect Core 1.0 §5.1).
    case emailVerified = "email_verified"
    /// The token's `xms_edov`, an optional claim of Microsoft Entra ID: the owner of the address's domain was verified.
    case domainVerified = "xms_edov"
    /// The issuer itself, for addresses of the environment's own domains: a tenant of Microsoft Entra ID, whose
    /// administrators say who has which address.
    case issuer
}
