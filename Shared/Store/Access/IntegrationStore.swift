package import Model
internal import ObjectStore
package import Postgres

/// The SQL of `access.integration`: programs that may open every realm of an environment.
package enum IntegrationStore {
    /// An integration of an environment.
    package struct Integration: Sendable, Hashable {
        package let environment: EnvironmentID
        package let id: Int32
        package let name: String

        package init(environment: EnvironmentID, id: Int32, name: String) {
            (self.environment, self.id, self.name) = (environment, id, name)
        }
    }

    package struct Row: Encodable {
        package let environment: String
        package let name: String
        package let clientId: String?
        package let subject: String?
        package let createdAt: String
    }

    /// Adds an integration that authenticates with a key or with tokens of a client.
    ///
    /// - Parameters:
    ///   - subject: The subject of the client's tokens; `nil`: the client id.
    ///   - record: The audit statement, written with decision 0 if the integration was added.
    /// - Returns: `false` if the name or client id is in use.
    package static func add(
        _ name: String, keyHash: Bytea?, clientID: String? = nil, subject: String? = nil, in environment: EnvironmentID,
        record: Statement? = nil, on connection: inout Connection
    ) throws(PostgresError) -> Bool {
        let results = try connection.run(
            [
                """
                SELECT realm.miss(ARRAY[0]) WHERE EXISTS (
                    SELECT FROM access.integration WHERE environment_id = \(environment)
                        AND (name = \(name) OR client_id = \(clientID)))
                """,
                """
                INSERT INTO access.integration (environment_id, name, key_hash, client_id, subject)
                VALUES (\(environment), \(name), \(keyHash), \(clientID), \(subject)) ON CONFLICT DO NOTHING
                """,
            ] + (record.map { [$0] } ?? []))
        return results[1].affectedCount == 1
    }

    /// Removes an integration.
    ///
    /// Holds the lock of the environment's counter: writes in progress commit before it, and no later ones succeed.
    ///
    /// - Parameter record: The audit statement, written with decision 0 if the integration was removed.
    /// - Returns: `false` if there is no integration of this name.
    package static func remove(
        _ name: String, in environment: EnvironmentID, record: Statement, on connection: inout Connection
    ) throws(PostgresError) -> Bool {
        let results = try connection.run([
            "SELECT FROM realm.environment WHERE id = \(environment) FOR UPDATE",
            """
            SELECT realm.miss(ARRAY[0]) WHERE NOT EXISTS (
                SELECT FROM access.integration WHERE environment_id = \(environment) AND name = \(name))
            """,
            "DELETE FROM access.integration WHERE environment_id = \(environment) AND name = \(name)",
            record,
        ])
        return results[2].affectedCount == 1
    }

    /// Returns all integrations, sorted by environment and name.
    package static func list(on connection: inout Connection) throws(PostgresError) -> [Row] {
        let rows = try connection.run(
            """
            SELECT e.name, i.name, i.client_id, i.subject,
                to_char(i.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM access.integration i JOIN realm.environment e ON e.id = i.environment_id ORDER BY 1, 2
            """)
        return try rows.decode(String.self, String.self, String?.self, String?.self, String.self).map {
            Row(environment: $0, name: $1, clientId: $2, subject: $3, createdAt: $4)
        }
    }

    /// Returns the integration whose key has this hash.
    package static func find(
        keyHash: Bytea, on connection: inout Connection
    ) throws(PostgresError) -> Integration? {
        let rows = try connection.run(
            "SELECT environment_id, id, name FROM access.integration WHERE key_hash = \(keyHash)")
        guard let (environment, id, name) = try rows.first?.decode(EnvironmentID.self, Int32.self, String.self) else {
            return nil
        }
        return Integration(environment: environment, id: id, name: name)
    }

    /// Returns a statement with one row without columns if the integration exists.
    package static func isThere(_ id: Int32, in environment: EnvironmentID) -> Statement {
        "SELECT FROM access.integration WHERE environment_id = \(environment) AND id = \(id)"
    }

    /// Returns a statement that marks decisions of removed integrations as missed.
    package static func missRemoved(
        _ integrations: [(id: Int32, decision: Int32)], in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT realm.miss(array_agg(DISTINCT g.decision))
        FROM unnest(\(integrations.map(\.id)), \(integrations.map(\.decision))) AS g(id, decision)
        WHERE NOT EXISTS (
            SELECT FROM access.integration i WHERE i.environment_id = \(environment) AND i.id = g.id)
        """
    }
}
