import FoundationEssentials
import Model
package import Tenants

/// One tenant of Microsoft Entra ID, which signs for its own people alone.
///
/// Source: "Access tokens in the Microsoft identity platform" and "National clouds" of Microsoft's documentation.
package struct EntraTenant: Sendable, Equatable {
    /// Its id, lowered.
    package let id: String

    /// The authorities of the worldwide cloud and of the national ones. Those of customer tenants (`ciamlogin.com`,
    /// `b2clogin.com`) are not among them: there people make their accounts themselves.
    private static let hosts: Set<String> = [
        "login.microsoftonline.com", "login.microsoftonline.us", "login.partner.microsoftonline.cn",
    ]
    private static let localHosts: Set<String> = ["127.0.0.1", "localhost", "::1"]
    /// Where Microsoft's personal accounts are.
    private static let personal = "9188040d-6c67-4c5b-b112-36a304b66dad"

    /// Reads `https://login.microsoftonline.com/{tenant id}/v2.0`.
    ///
    /// - Returns: `nil` for what many tenants share (`common`, `organizations`, `consumers`), the tenant of personal
    ///   accounts, and all other issuers.
    package init?(issuer: String) {
        guard let url = URL(string: issuer), let host = url.host, url.user == nil, url.query == nil,
            url.fragment == nil, !issuer.hasSuffix("/"),
            url.scheme == "https" && url.port == nil && Self.hosts.contains(host) || Self.localHosts.contains(host)
        else { return nil }
        let parts = url.path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].isEmpty, parts[2] == "v2.0", Self.isID(parts[1]) else { return nil }
        id = EmailAddress.lowered(String(parts[1]))
        guard id != Self.personal else { return nil }
    }

    /// Whether it is an issuer of Microsoft Entra ID, and not that of one tenant.
    package static func isShared(issuer: String) -> Bool {
        guard let host = URL(string: issuer)?.host else { return false }
        return hosts.contains(EmailAddress.lowered(host)) && EntraTenant(issuer: issuer) == nil
    }

    /// Eight, four, four, four and twelve hexadecimal digits.
    private static func isID(_ text: Substring) -> Bool {
        let groups = text.split(separator: "-", omittingEmptySubsequences: false)
        return groups.map(\.utf8.count) == [8, 4, 4, 4, 12]
            && groups.joined().utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
            }
    }
}

/// Why nobody vouches for the address in a token. For the log: it names no person.
package enum UnvouchedAddress: Sendable, Equatable, CustomStringConvertible {
    /// The claim that should vouch is not there.
    case claimMissing(AddressVouching)
    /// It is there, and says no.
    case claimFalse(AddressVouching)
    /// The issuer vouches for its own people; it is not one tenant's.
    case issuerShared
    /// The token is of another tenant than its issuer, such as that of personal accounts.
    case tenantForeign
    /// The person is a guest of the tenant, whose account another provider looks after.
    case guest
    /// The address is of none of the environment's domains.
    case domainForeign

    package var description: String {
        switch self {
        case .claimMissing(let claim): "the token has no \(claim.rawValue)"
        case .claimFalse(let claim): "the token's \(claim.rawValue) is not true"
        case .issuerShared: "the issuer is not that of one tenant of Microsoft Entra ID"
        case .tenantForeign: "the token's tid is not the issuer's tenant"
        case .guest: "the person is a guest of the tenant"
        case .domainForeign: "the address is of none of the environment's domains"
        }
    }
}

extension TokenClaims {
    /// The address that is vouched for; `nil` when the token names none.
    ///
    /// - Throws: `TokenError.emailMissing` when it is none, `.emailUnverified` when nobody vouches for it.
    func address(in environment: EnvironmentIdentity) throws(TokenError) -> String? {
        switch environment.vouching {
        case .emailVerified: try address(isEmailVerified, .emailVerified)
        case .domainVerified: try address(isDomainVerified, .domainVerified)
        case .issuer: try ownAddress(in: environment)
        }
    }

    private func address(_ isVerified: Bool?, _ claim: AddressVouching) throws(TokenError) -> String? {
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
