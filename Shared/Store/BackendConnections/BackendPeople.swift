import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// The SQL of `backend.person`: the people of an environment whom its back end knows.
package enum BackendPeople {
    package struct Row: Encodable {
        package let email: String
        package let reference: [String: String]
        /// Whether they have come in, or were invited.
        package let hasRealm: Bool
    }

    /// In the order of addresses.
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

    /// How the back end calls each, by address.
    package static func references(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [String: [String: String]] {
        Dictionary(try list(in: environment, on: &connection).map { ($0.email, $0.reference) }) { first, _ in first }
    }

    /// The addresses of those whom the back end knows, in their order.
    ///
    /// - Parameter wanted: Only of these; `nil`: of everybody.
    package static func emails(
        _ wanted: [String]?, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [String] {
        try connection.run(
            """
            SELECT email FROM backend.person WHERE environment_id = \(environment)
                AND (\(wanted == nil) OR email = ANY (\(wanted ?? []))) ORDER BY email
            """
        ).decode(String.self)
    }

    /// The first address; `nil` when there is nobody.
    package static func firstEmail(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> String? {
        try connection.run(
            "SELECT email FROM backend.person WHERE environment_id = \(environment) ORDER BY email LIMIT 1"
        ).first?.decode(String.self)
    }

    /// People whose realm is filled and whom the back end knows. Rows: e-mail.
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
