import FoundationEssentials
package import Model
package import Postgres

/// The stored outlines of environments' maps.
package enum OutlineStore {
    /// An outline as it is served.
    package struct Stored: Sendable {
        /// GeoJSON.
        package let content: String
        /// SHA-256 of the content.
        package let digest: Bytea
    }

    /// Loads an environment's outline.
    ///
    /// - Returns: `nil` if it has none, or if the schema predates outlines.
    package static func load(
        _ environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> Stored? {
        let rows = try connection.runIfTableExists(
            "SELECT content, digest FROM access.outline WHERE environment_id = \(environment.rawValue)")
        guard let (content, digest) = try rows?.first?.decode(String.self, Bytea.self) else { return nil }
        return Stored(content: content, digest: digest)
    }

    /// Loads the digest of an environment's outline.
    ///
    /// - Returns: `nil` if it has none, or if the schema predates outlines.
    package static func digest(
        of environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> Bytea? {
        let rows = try connection.runIfTableExists(
            "SELECT digest FROM access.outline WHERE environment_id = \(environment.rawValue)")
        return try rows?.first?.decode(Bytea.self)
    }

    /// Returns the statement that stores an environment's outline.
    package static func save(_ outline: MapOutline, in environment: EnvironmentID) throws -> Statement {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let content = String(decoding: try encoder.encode(outline), as: UTF8.self)
        return """
            INSERT INTO access.outline (environment_id, content, digest)
            VALUES (\(environment.rawValue), \(content), sha256(convert_to(\(content), 'UTF8')))
            ON CONFLICT (environment_id) DO UPDATE SET content = excluded.content, digest = excluded.digest
            """
    }

    /// Returns the statement that deletes an environment's outline.
    package static func remove(from environment: EnvironmentID) -> Statement {
        "DELETE FROM access.outline WHERE environment_id = \(environment.rawValue)"
    }
}
