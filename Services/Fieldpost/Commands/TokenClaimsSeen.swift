import Identity
import Model
import Postgres
import Tenants

/// The names of the claims that the ID token of an environment's newest login had.
struct TokenClaimsSeen {
    let names: [String]
    let time: String

    /// - Returns: `nil` when nobody has logged in yet.
    static func load(_ environment: EnvironmentID, on connection: inout Connection) throws -> TokenClaimsSeen? {
        let rows = try connection.run(
            """
            SELECT names, to_char(seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM onboarding.token_claims WHERE environment_id = \(environment.rawValue)
            """)
        guard let (names, time) = try rows.first?.decode([String].self, String.self) else { return nil }
        return TokenClaimsSeen(names: names, time: time)
    }

    /// What it means for who may come in.
    static func finding(_ seen: TokenClaimsSeen?, _ stored: StoredEnvironment) -> EnvironmentFinding {
        guard let seen else { return .init(what: "claims", works: true, detail: "nobody has logged in yet") }
        let told = ["email", "email_verified", "xms_edov", "tid", "preferred_username"].map { name in
            "\(name) \(seen.names.contains(name) ? "yes" : "no")"
        }
        let objection = seen.objection(stored.addressVouchedBy).map { "\($0); " } ?? ""
        return .init(
            what: "claims", works: objection.isEmpty,
            detail: "\(objection)addresses are vouched for by \(stored.addressVouchedBy); the token of "
                + "\(seen.time) has \(told.joined(separator: ", ")) (all: \(seen.names.joined(separator: " ")))")
    }

    private func objection(_ vouching: String) -> String? {
        switch AddressVouching(rawValue: vouching) {
        case .emailVerified, .domainVerified:
            if !names.contains("email") { return "no email: it names no address" }
            return names.contains(vouching) ? nil : "no \(vouching): nobody vouches for the address"
        case .issuer:
            return names.contains("email") || names.contains("preferred_username")
                ? nil : "neither email nor preferred_username: it names no address"
        case nil: return "this program is too old to know what vouches for addresses"
        }
    }
}
