import Identity
import Model
import Postgres
import Tenants

/// The names of the claims in the ID token of an environment's newest login.
struct LoginTokenClaims {
    let names: [String]
    let time: String

    /// - Returns: `nil` before the first login.
    static func load(_ environment: EnvironmentID, on connection: inout Connection) throws -> LoginTokenClaims? {
        let rows = try connection.run(
            """
            SELECT names, to_char(seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM onboarding.token_claims WHERE environment_id = \(environment.rawValue)
            """)
        guard let (names, time) = try rows.first?.decode([String].self, String.self) else { return nil }
        return LoginTokenClaims(names: names, time: time)
    }

    /// Evaluates whether logins with such a token can be accepted.
    static func finding(_ claims: LoginTokenClaims?, _ stored: StoredEnvironment) -> EnvironmentFinding {
        guard let claims else { return .init(what: "claims", works: true, detail: "no login yet") }
        let present = ["email", "email_verified", "xms_edov", "tid", "preferred_username"].map { name in
            "\(name) \(claims.names.contains(name) ? "yes" : "no")"
        }
        let objection = claims.objection(stored.addressVerifiedBy).map { "\($0); " } ?? ""
        return .init(
            what: "claims", works: objection.isEmpty,
            detail: "\(objection)addresses are verified by \(stored.addressVerifiedBy); the token of "
                + "\(claims.time) has \(present.joined(separator: ", ")) (all: \(claims.names.joined(separator: " ")))")
    }

    private func objection(_ verification: String) -> String? {
        switch AddressVerification(rawValue: verification) {
        case .emailVerified, .domainVerified:
            if !names.contains("email") { return "no email: the token has no address" }
            return names.contains(verification) ? nil : "no \(verification): the address is not verified"
        case .issuer:
            return names.contains("email") || names.contains("preferred_username")
                ? nil : "neither email nor preferred_username: the token has no address"
        case nil: return "this program does not support the verification \(verification)"
        }
    }
}
