import Essentials
package import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// Registers people: creates a `Person` object in `/common`, so that a manager can refer to them, and a `Realms` object
/// in `/users`, which triggers `realm-initializer`.
package enum Registration {
    /// The registration of a person.
    package struct Outcome: Sendable {
        package let email: String
        package let path: RealmPath
        /// Whether this call created it.
        package let isNew: Bool
    }

    /// The limit of people per transaction.
    package static let batchCountMax = 500

    /// Registers people; existing registrations stay unchanged. Idempotent: a repeated call resumes after an
    /// interruption.
    ///
    /// - Parameter emails: Lower case, without duplicates; at most ``batchCountMax``.
    @discardableResult
    package static func register(
        _ emails: [String], in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [Outcome] {
        var directory = RealmDirectory()
        guard let users = try directory.id(of: .users, in: environment, create: true, on: &connection) else {
            throw PostgresError(sqlState: nil, message: "the realm \(RealmPath.users) could not be created")
        }
        let results = try connection.run([
            """
            INSERT INTO access.person (environment_id, email)
            SELECT \(environment.rawValue), e FROM unnest(\(emails)) AS p(e) ON CONFLICT DO NOTHING
            """,
            """
            SELECT object_id, email FROM access.person
            WHERE environment_id = \(environment.rawValue) AND email = ANY (\(emails)) ORDER BY id
            """,
            // Schemas before 29 lack the column.
            """
            SELECT coalesce((to_jsonb(e)->>'founded_as')::int, id) FROM realm.environment e
            WHERE id = \(environment.rawValue)
            """,
        ])
        let founded = try results[2][0].decode(EnvironmentID.self)
        try People.add(
            try results[1].decode(UUID.self, String.self).map { (id: $0, name: People.defaultName(of: $1)) },
            in: environment, on: &connection)
        var batch = WriteBatch(environment: environment)
        let paths = try emails.map { try RealmPath.user($0) }
        for (decision, email) in emails.enumerated() {
            let key = ObjectKey(realm: users, kind: .realms, id: objectID(of: email, foundedAs: founded))
            let fields = try CanonicalJSON(encoding: RealmRegistration(userId: email, path: paths[decision]))
            batch.expect(key, at: 0, decision: decision)
            batch.put(key, fields, decision: decision)
        }
        let missed = try batch.commit(on: &connection).conflicts
        return emails.indices.map {
            Outcome(email: emails[$0], path: paths[$0], isNew: !missed.contains($0))
        }
    }

    /// Returns the id of a person's `Realms` object, which is deterministic and survives a move of the environment.
    ///
    /// - Parameter environment: The number that the environment had in its original installation.
    package static func objectID(of email: String, foundedAs environment: EnvironmentID) -> UUID {
        UUID(name: "\(environment)/\(email)", in: namespace)
    }

    /// The namespace of `Realms` objects. Must never change.
    private static let namespace = UUID(
        uuid: (0x6B, 0x1D, 0x3C, 0x0A, 0x52, 0x7E, 0x4F, 0x0B, 0x9A, 0x61, 0x08, 0x2F, 0xD4, 0x73, 0xC5, 0x19))
}
