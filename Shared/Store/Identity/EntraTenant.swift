import Essentials
import FoundationEssentials
import Model
package import Tenants

/// A single tenant of Microsoft Entra ID, which issues tokens for its own accounts only.
///
/// Source: "Access tokens in the Microsoft identity platform" and "National clouds" of Microsoft's documentation.
package struct EntraTenant: Sendable, Equatable {
    /// The tenant id in lower case.
    package let id: String

    /// The authorities of the worldwide and national clouds. Those of customer tenants (`ciamlogin.com`,
    /// `b2clogin.com`) are excluded: their accounts are self-registered.
    private static let hosts: Set<String> = [
        "login.microsoftonline.com", "login.microsoftonline.us", "login.partner.microsoftonline.cn",
    ]
    private static let localHosts: Set<String> = ["127.0.0.1", "localhost", "::1"]
    /// The tenant of Microsoft's personal accounts.
    private static let personal = "9188040d-6c67-4c5b-b112-36a304b66dad"

    /// Parses `https://login.microsoftonline.com/{tenant id}/v2.0`.
    ///
    /// - Returns: `nil` for issuers that many tenants share (`common`, `organizations`, `consumers`), the tenant of
    ///   personal accounts, and all other issuers.
    package init?(issuer: String) {
        guard let url = URL(string: issuer), let host = url.host, url.user == nil, url.query == nil,
            url.fragment == nil, !issuer.hasSuffix("/"),
            url.scheme == "https" && url.port == nil && Self.hosts.contains(host) || Self.localHosts.contains(host)
        else { return nil }
        let parts = url.path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].isEmpty, parts[2] == "v2.0", UUID(ascii: parts[1]) != nil else { return nil }
        id = EmailAddress.lowered(String(parts[1]))
        guard id != Self.personal else { return nil }
    }

    /// Whether an issuer is Microsoft Entra ID, but not a single tenant.
    package static func isShared(issuer: String) -> Bool {
        guard let host = URL(string: issuer)?.host else { return false }
        return hosts.contains(EmailAddress.lowered(host)) && EntraTenant(issuer: issuer) == nil
    }
}

/// The reason why a token's e-mail address is not verified. For the log: contains no personal data.
package enum UnverifiedAddressReason: Sendable, Equatable, CustomStringConvertible {
    /// The claim that verifies the address is absent.
    case claimMissing(AddressVerification)
    /// The claim is present and not true.
    case claimFalse(AddressVerification)
    /// The issuer asserts addresses, but is not a single tenant.
    case issuerShared
    /// The token's tenant differs from its issuer's, for example that of personal accounts.
    case tenantForeign
    /// The account is a guest of the tenant, managed by another provider.
    case guest
    /// The address's domain is not one of the environment's.
    case domainForeign

    package var description: String {
        switch self {
        case .claimMissing(let claim): "the token has no \(claim.rawValue)"
        case .claimFalse(let claim): "the token's \(claim.rawValue) is not true"
        case .issuerShared: "the issuer is not a single tenant of Microsoft Entra ID"
        case .tenantForeign: "the token's tid differs from the issuer's tenant"
        case .guest: "the account is a guest of the tenant"
        case .domainForeign: "the address is not in one of the environment's domains"
        }
    }
}

extension TokenClaims {
    /// Returns the verified e-mail address; `nil` if the token has none.
    ///
    /// - Throws: `TokenError.emailMissing` if it is malformed, `.emailUnverified` if it is not verified.
    func address(in environment: EnvironmentIdentity) throws(TokenError) -> String? {
        switch environment.addressVerification {
        case .emailVerified: try address(isEmailVerified, .emailVerified)
        case .domainVerified: try address(isDomainVerified, .domainVerified)
        case .issuer: try ownAddress(in: environment)
        }
    }

    private func address(_ isVerified: Bool?, _ claim: AddressVerification) throws(TokenError) -> String? {
        guard let email else { return nil }
        guard email.utf8.count <= 254, email.contains("@") else { throw .emailMissing }
        guard let isVerified else { throw .emailUnverified(.claimMissing(claim)) }
        guard isVerified else { throw .emailUnverified(.claimFalse(claim)) }
        return EmailAddress.lowered(email)
    }

    private func ownAddress(in environment: EnvironmentIdentity) throws(TokenError) -> String? {
        guard let text = email ?? preferredUsername else { return nil }
        guard let tenant = EntraTenant(issuer: environment.issuer) else { throw .emailUnverified(.issuerShared) }
        if let tenantID, EmailAddress.lowered(tenantID) != tenant.id { throw .emailUnverified(.tenantForeign) }
        // Absent in tokens of the tenant's own accounts, or the tenant itself.
        let isOwn = { (provider: String) in
            provider == environment.issuer || provider == "https://sts.windows.net/\(tenant.id)/"
        }
        guard identityProvider.map(isOwn) ?? true, !isGuest else { throw .emailUnverified(.guest) }
        guard let address = EmailAddress(text), environment.domains.contains(address.domain) else {
            throw .emailUnverified(.domainForeign)
        }
        return address.description
    }
}
