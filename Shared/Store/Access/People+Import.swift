import Essentials
package import FoundationEssentials
package import Model
package import Postgres

extension People {
    /// A person to be created with an id that another system assigned.
    package struct Claim: Sendable {
        package let id: UUID
        /// `nil` if the person exists already.
        package let email: String?

        package init(id: UUID, email: String?) {
            self.id = id
            self.email = email
        }
    }

    /// Invites people with these ids, unless the address or the id belongs to another person.
    ///
    /// - Returns: An error sentence for each claim; `nil` if the id now belongs to this person.
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
                return "\(email) exists already, with the id \(id.text)"
            }
            guard let email = emails[claim.id] else {
                return "no person has this id; give 'email' with 'id', or invite the person and use their id"
            }
            return claim.email == nil || claim.email == email ? nil : "the id belongs to \(email)"
        }
    }

    /// Returns the addresses that cannot log in: neither they nor their domains belong to the environment.
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
