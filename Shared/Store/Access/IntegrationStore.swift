package import Model
internal import ObjectStore
package import Postgres

/// The SQL of `access.integration`: the programs that may open every realm of an environment.
package enum IntegrationStore {
    /// An integration that is there.
    package struct Integration: Sendable {
        package let environment: EnvironmentID
        package let id: Int32
        package let name: String
    }

    package struct Row: Encodable {
        package let environment: String
        package let name: String
        package let clientId: String?
        package let subject: String?
        package let createdAt: String
    }

    /// Lets an integration in: with the key of a hash, or with tokens of a client.
    ///
    /// - Parameters:
    ///   - subject: Of the client's tokens; `nil`: the client id.
    ///   - record: The audit log's statement, written with decision 0 when it was added.
    /// - Returns: `false` when there is one of this name or client id.
    package static func add(
        _ name: String, keyHash: Bytea?, clientID: String? = nil, subject: String? = nil, in environment: EnvironmentID,
        record: Statement? = nil, on connection: inout Connection
    ) throws(PostgresError) -> Bool {
        let answers = try connection.run(
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
        return answers[1].affectedCount == 1
    }

    /// Shuts an integration out.
    ///
    /// Under the counter's lock: a write that is under way is before it, and none comes after it.
    ///
    /// - Parameter record: The audit log's statement, written with decision 0 when it was removed.
    /// - Returns: `false` when there is none of this name.
    package static func remove(
        _ name: String, in environment: EnvironmentID, record: Statement, on connection: inout Connection
    ) throws(PostgresError) -> Bool {
        let answers = try connection.run([
            "SELECT FROM realm.environment WHERE id = \(environment) FOR UPDATE",
            """
            SELECT realm.miss(ARRAY[0]) WHERE NOT EXISTS (
                SELECT FROM access.integration WHERE environment_id = \(environment) AND name = \(name))
            """,
            "DELETE FROM access.integration WHERE environment_id = \(environment) AND name = \(name)",
            record,
        ])
        return answers[2].affectedCount == 1
    }

    /// All, by the names of environments and their own.
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

    /// The integration that has the key with this hash.
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

    /// Whether an integration is there still. Rows: one without columns when it is.
    package static func isThere(_ id: Int32, in environment: EnvironmentID) -> Statement {
        "SELECT FROM access.integration WHERE environment_id = \(environment) AND id = \(id)"
    }

    /// Misses the decisions of integrations that are not there any more.
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
