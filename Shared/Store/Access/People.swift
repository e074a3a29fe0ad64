import Essentials
package import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// The `Person` objects that the server creates in `/common`.
package enum People {
    /// Returns a statement that selects the name of a person's last login: a name or null; no row before the first
    /// login.
    package static func loginName(of email: String, in environment: EnvironmentID) -> Statement {
        "SELECT name FROM access.person WHERE environment_id = \(environment.rawValue) AND email = \(email)"
    }

    /// Returns the ids of the `Person` objects of those addresses that were invited or have logged in.
    package static func objects(
        of emails: [String], in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [(email: String, id: UUID)] {
        try connection.run(
            """
            SELECT email, object_id FROM access.person
            WHERE environment_id = \(environment.rawValue) AND email = ANY (\(emails))
            """
        ).decode(String.self, UUID.self).map { (email: $0, id: $1) }
    }

    /// Returns a statement that resolves ids of `Person` objects. Rows: id, e-mail address.
    package static func emails(of people: some Sequence<UUID>, in environment: EnvironmentID) -> Statement {
        """
        SELECT p.object_id, p.email
        FROM unnest(\(Array(people))) AS i(id) CROSS JOIN LATERAL (
            SELECT * FROM access.person p
            WHERE p.environment_id = \(environment.rawValue) AND p.object_id = i.id
            OFFSET 0
        ) p
        """
    }

    /// Returns a statement that lists all people. Rows: id, e-mail address.
    package static func emails(in environment: EnvironmentID) -> Statement {
        "SELECT object_id, email FROM access.person WHERE environment_id = \(environment.rawValue)"
    }

    /// Returns a statement that lists the people in ranges of ids. Rows: id, e-mail address.
    package static func emails(among ranges: [ClosedRange<UUID>], in environment: EnvironmentID) -> Statement {
        """
        SELECT p.object_id, p.email
        FROM unnest(\(ranges.map(\.lowerBound)), \(ranges.map(\.upperBound))) AS i(low, high) CROSS JOIN LATERAL (
            SELECT * FROM access.person p
            WHERE p.environment_id = \(environment.rawValue) AND p.object_id BETWEEN i.low AND i.high
            OFFSET 0
        ) p
        """
    }

    /// Returns a statement that selects the first person of each range of ids, to resolve the prefix of an id that is
    /// derived from two. Rows: the range's number from 1, the object's id, e-mail address.
    package static func first(in ranges: [ClosedRange<UUID>], in environment: EnvironmentID) -> Statement {
        """
        SELECT i.n::int, p.object_id, p.email
        FROM unnest(\(ranges.map(\.lowerBound)), \(ranges.map(\.upperBound))) WITH ORDINALITY AS i(first, last, n)
        CROSS JOIN LATERAL (
            SELECT * FROM access.person p
            WHERE p.environment_id = \(environment.rawValue) AND p.object_id BETWEEN i.first AND i.last
            ORDER BY p.object_id LIMIT 1
        ) p
        """
    }

    /// Returns the local part of an address: the name of a person whose name is not known.
    package static func defaultName(of email: String) -> String { String(email.prefix { $0 != "@" }) }

    /// Creates `Person` objects for people without one, so that a manager can refer to them; existing ones are
    /// unchanged.
    ///
    /// A deleted object is re-created with the role worker and the same id, which is the person's.
    package static func add(
        _ people: [(id: UUID, name: String)], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        var directory = RealmDirectory()
        let realm = try directory.id(of: .common, in: environment, create: true, on: &connection)
        guard let common = realm, !people.isEmpty else { return }
        let keys = people.map { ObjectKey(realm: common, kind: .person, id: $0.id) }
        let existing = try RealmObject.byKey(try connection.run(RealmObject.load(keys, in: environment)))
        var batch = WriteBatch(environment: environment)
        for (decision, (person, key)) in zip(people, keys).enumerated() {
            let object = existing[key]
            guard object?.fields == nil else { continue }
            batch.expect(key, at: object?.position ?? 0, decision: decision)
            batch.put(key, try CanonicalJSON(encoding: Person(name: person.name)), decision: decision)
        }
        // A missed decision means that another transaction created the object.
        _ = try batch.commit(on: &connection)
    }

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
