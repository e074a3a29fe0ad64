import DeviceClient
import FoundationEssentials
import Model
import Postgres

/// Reads an environment from PostgreSQL, for comparisons and figures.
struct RealmReader: Sendable {
    let pool: Pool
    let environment: EnvironmentID

    /// The whole content of a realm; empty when there is no such realm.
    func content(of realm: RealmPath) async throws -> RealmContent {
        let environment = environment
        return try await pool.run { connection in
            let rows = try connection.run(
                """
                SELECT o.kind, o.id, o.position, o.fields FROM realm.object o
                JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                WHERE o.environment_id = \(environment.rawValue) AND r.path = \(realm.description) AND NOT o.deleted
                """)
            var content: RealmContent = [:]
            content.reserveCapacity(rows.count)
            for (name, id, position, fields) in try rows.decode(
                String.self, UUID.self, Int64.self, JSONBytes.self)
            {
                guard let kind = Kind(rawValue: name) else { continue }
                content[ObjectID(kind: kind, id: id)] = DeviceObject(position: position, fields: fields.bytes)
            }
            return content
        }
    }

    /// The environment's counter.
    func position() async throws -> Int64 {
        let environment = environment
        return try await pool.run { connection in
            try connection.run("SELECT position FROM realm.environment WHERE id = \(environment.rawValue)")[0]
                .decode(Int64.self)
        }
    }

    /// Changes after a position whose kind is published on a topic.
    func eventCount(after position: Int64) async throws -> Int {
        let environment = environment
        let kinds = Array(Set(Topics.all.flatMap(\.kinds))).map(\.rawValue)
        return try await pool.run { connection in
            let rows = try connection.run(
                """
                SELECT count(*) FROM realm.change WHERE environment_id = \(environment.rawValue)
                    AND position > \(position) AND kind = ANY (\(kinds))
                """)
            return Int(try rows[0].decode(Int64.self))
        }
    }
}
