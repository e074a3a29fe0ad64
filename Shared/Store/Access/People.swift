package import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// The `Person` objects that the server makes in `/common`.
package enum People {
    /// The name that the last login told of somebody. Rows: a name or null; none before their first.
    package static func loginName(of email: String, in environment: EnvironmentID) -> Statement {
        "SELECT name FROM access.person WHERE environment_id = \(environment.rawValue) AND email = \(email)"
    }

    /// The ids of the `Person` objects of those among these addresses who were invited or have logged in.
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

    /// The statement that reads whose own realms the ids of `Person` objects name. Rows: id, e-mail address.
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

    /// The same of everybody.
    package static func emails(in environment: EnvironmentID) -> Statement {
        "SELECT object_id, email FROM access.person WHERE environment_id = \(environment.rawValue)"
    }

    /// The same of all whose ids are in one of these ranges.
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

    /// The statement that reads who it is that ids made of two begin with: of each range of ids the first person whose
    /// object's id is in it. Rows: the range's number from 1 on, the object's id, e-mail address.
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

    /// What somebody is called of whom nothing but the address is known.
    package static func defaultName(of email: String) -> String { String(email.prefix { $0 != "@" }) }

    /// Makes the objects of people who have none, so that a manager can name them; others stay as they are.
    ///
    /// One that an integration deleted comes back as a worker's: its id is the person's.
    package static func add(
        _ people: [(id: UUID, name: String)], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        var directory = RealmDirectory()
        let found = try directory.id(of: .common, in: environment, create: true, on: &connection)
        guard let common = found, !people.isEmpty else { return }
        let keys = people.map { ObjectKey(realm: common, kind: .person, id: $0.id) }
        let there = try RealmObject.byKey(try connection.run(RealmObject.load(keys, in: environment)))
        var batch = WriteBatch(environment: environment)
        for (decision, (person, key)) in zip(people, keys).enumerated() {
            let found = there[key]
            guard found?.fields == nil else { continue }
            batch.expect(key, at: found?.position ?? 0, decision: decision)
            batch.put(key, try CanonicalJSON(encoding: Person(name: person.name)), decision: decision)
        }
        // Who misses was made by somebody else meanwhile.
        _ = try batch.commit(on: &connection)
    }
}
