import Essentials
package import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// Makes people known: for each a `Person` object in `/common`, so that a manager can name them, and a `Realms` object
/// in `/users`, which `realm-initializer` hears of.
package enum Registration {
    /// A person who has a realm now.
    package struct Registered: Sendable {
        package let email: String
        package let path: RealmPath
        /// Whether it was made by this call.
        package let isNew: Bool
    }

    /// As many people as one transaction should write.
    package static let batchCountMax = 500

    /// Registers people; who was registered before stays as he is. Done again, it goes on where it was interrupted.
    ///
    /// - Parameter emails: Lower case, each once; as many as one transaction should write.
    @discardableResult
    package static func register(
        _ emails: [String], in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [Registered] {
        var directory = RealmDirectory()
        guard let users = try directory.id(of: .users, in: environment, create: true, on: &connection) else {
            throw PostgresError(sqlState: nil, message: "the realm \(RealmPath.users) could not be made")
        }
        let answers = try connection.run([
            """
            INSERT INTO access.person (environment_id, email)
            SELECT \(environment.rawValue), e FROM unnest(\(emails)) AS p(e) ON CONFLICT DO NOTHING
            """,
            """
            SELECT object_id, email FROM access.person
            WHERE environment_id = \(environment.rawValue) AND email = ANY (\(emails)) ORDER BY id
            """,
            // A schema before 29 does not know the column.
            """
            SELECT coalesce((to_jsonb(e)->>'founded_as')::int, id) FROM realm.environment e
            WHERE id = \(environment.rawValue)
            """,
        ])
        let founded = try answers[2][0].decode(EnvironmentID.self)
        try People.add(
            try answers[1].decode(UUID.self, String.self).map { (id: $0, name: People.defaultName(of: $1)) },
            in: environment, on: &connection)
        var batch = WriteBatch(environment: environment)
        let paths = try emails.map { try RealmPath.user($0) }
        for (decision, email) in emails.enumerated() {
            let key = ObjectKey(realm: users, kind: .realms, id: objectID(of: email, foundedAs: founded))
            let fields = try CanonicalJSON(encoding: RealmRegistration(userId: email, path: paths[decision]))
            batch.expect(key, at: 0, decision: decision)
            batch.put(key, fields, decision: decision)
        }
        let missed = try batch.commit(on: &connection).missed
        return emails.indices.map {
            Registered(email: emails[$0], path: paths[$0], isNew: !missed.contains($0))
        }
    }

    /// The same person has the same object, whoever registers them and how often, and wherever their environment goes.
    ///
    /// - Parameter environment: The number that the environment had where it was founded.
    package static func objectID(of email: String, foundedAs environment: EnvironmentID) -> UUID {
        UUID(name: "\(environment)/\(email)", in: namespace)
    }

    /// The namespace of `Realms` objects, chosen once and for ever.
    private static let namespace = UUID(
        uuid: (0x6B, 0x1D, 0x3C, 0x0A, 0x52, 0x7E, 0x4F, 0x0B, 0x9A, 0x61, 0x08, 0x2F, 0xD4, 0x73, 0xC5, 0x19))
}
