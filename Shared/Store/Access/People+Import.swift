import Essentials
package import FoundationEssentials
package import Model
package import Postgres

extension People {
    /// Somebody who is to be known under an id that another system gave them.
    package struct Claim: Sendable {
        package let id: UUID
        /// `nil`: somebody has the id already.
        package let email: String?

        package init(id: UUID, email: String?) {
            self.id = id
            self.email = email
        }
    }

    /// Lets people in under these ids, as an invitation does, where neither the address nor the id is somebody's.
    ///
    /// - Returns: For each claim what is wrong with it, as a sentence; `nil` when the id is that of this person.
    package static func claim(
        _ claims: [Claim], in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [String?] {
        let named = claims.compactMap { claim in claim.email.map { (id: claim.id, email: $0) } }
        let rows = try connection.run([
            """
            INSERT INTO access.person (environment_id, email, object_id)
            SELECT \(environment.rawValue), n.email, n.id
            FROM unnest(\(named.map(\.email)), \(named.map(\.id))) AS n(email, id)
            WHERE NOT EXISTS (
                SELECT FROM access.person p WHERE p.environment_id = \(environment.rawValue)
                    AND (p.email = n.email OR p.object_id = n.id))
            ON CONFLICT DO NOTHING
            """,
            """
            SELECT email, object_id FROM access.person WHERE environment_id = \(environment.rawValue)
                AND (email = ANY (\(named.map(\.email))) OR object_id = ANY (\(claims.map(\.id))))
            """,
        ])[1]
        var (emails, ids): ([UUID: String], [String: UUID]) = ([:], [:])
        for (email, id) in try rows.decode(String.self, UUID.self) {
            emails[id] = email
            ids[email] = id
        }
        return claims.map { claim in
            if let email = claim.email, let id = ids[email], id != claim.id {
                return "\(email) is known already, with the id \(id.text)"
            }
            guard let email = emails[claim.id] else {
                return "nobody has this id; give 'email' beside 'id', or invite the person and use their id"
            }
            return claim.email == nil || claim.email == email ? nil : "the id is that of \(email)"
        }
    }

    /// Returns the addresses that cannot log in: neither they nor their domains are the environment's.
    package static func foreign(
        among emails: [String], in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [String] {
        try connection.run(
            """
            SELECT n.email FROM unnest(\(emails)) AS n(email)
            WHERE NOT EXISTS (
                    SELECT FROM access.domain d
                    WHERE d.environment_id = \(environment.rawValue) AND d.domain = split_part(n.email, '@', 2))
                AND NOT EXISTS (
                    SELECT FROM access.address a
                    WHERE a.environment_id = \(environment.rawValue) AND a.email = n.email)
            """
        ).decode(String.self)
    }
}
