import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// SQL statements for `backend.person`: the people of an environment with their identifiers in its back end.
package enum BackendPeople {
    package struct Row: Encodable {
        package let email: String
        package let reference: [String: String]
        /// Whether the person has signed in or was invited.
        package let hasRealm: Bool
    }

    /// Returns all people, ordered by address.
    package static func list(in environment: EnvironmentID, on connection: inout Connection) throws -> [Row] {
        let rows = try connection.run(
            """
            SELECT p.email, p.reference::text, p.email IN (
                SELECT o.fields::json->>'userId' FROM realm.realm r
                JOIN store.object o ON o.environment_id = r.environment_id AND o.realm_id = r.id
                WHERE r.environment_id = \(environment) AND r.path = \(RealmPath.users.description)
                    AND o.kind = \(Kind.realms) AND NOT o.deleted)
            FROM backend.person p WHERE p.environment_id = \(environment) ORDER BY p.email COLLATE "C"
            """)
        let decoder = JSONDecoder()
        return try rows.decode(String.self, String.self, Bool.self).map { email, reference, hasRealm in
            let reference = try decoder.decode([String: String].self, from: Data(reference.utf8))
            return Row(email: email, reference: reference, hasRealm: hasRealm)
        }
    }

    /// Returns the back end's identifiers of all people by address.
    package static func references(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [String: [String: String]] {
        Dictionary(try list(in: environment, on: &connection).map { ($0.email, $0.reference) }) { first, _ in first }
    }

    /// Returns the sorted addresses of people who are in the back end.
    ///
    /// - Parameter candidates: The addresses to include; `nil` for all.
    package static func emails(
        _ candidates: [String]?, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [String] {
        try connection.run(
            """
            SELECT email FROM backend.person WHERE environment_id = \(environment)
                AND (\(candidates == nil) OR email = ANY (\(candidates ?? []))) ORDER BY email
            """
        ).decode(String.self)
    }

    /// Returns the first address; `nil` if there are no people.
    package static func firstEmail(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> String? {
        try connection.run(
            "SELECT email FROM backend.person WHERE environment_id = \(environment) ORDER BY email LIMIT 1"
        ).first?.decode(String.self)
    }

    /// Selects people who are in the back end and whose realm is initialized. Rows: e-mail.
    ///
    /// - Parameter users: The number of the realm `/users`.
    package static func initialized(users: Int32, in environment: EnvironmentID) -> Statement {
        """
        SELECT p.email FROM store.object o
        JOIN backend.person p ON p.environment_id = \(environment) AND p.email = o.fields::json->>'userId'
        WHERE o.environment_id = \(environment) AND o.realm_id = \(users)
            AND o.kind = \(Kind.realms) AND NOT o.deleted AND (o.fields::json->>'isInitialized')::boolean
        """
    }
}
