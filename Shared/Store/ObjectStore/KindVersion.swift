package import Essentials
package import KindSchema
package import Model
package import Postgres

/// A version of an environment's schema file.
package struct KindVersion: Sendable {
    package let version: Int32
    /// The schema file as JSON.
    package let content: String
    /// SHA-256 of the content.
    package let digest: Bytea
    package let appliedAt: Timestamp
    package let appliedBy: String

    /// The declared kinds.
    ///
    /// - Throws: `EnvironmentKinds.Problems` if a newer program applied a form that this one does not support.
    package var kinds: EnvironmentKinds {
        get throws { try EnvironmentKinds(try SchemaValue(Array(content.utf8))) }
    }

    private static let columns: Statement = "version, content, digest, applied_at, applied_by"

    private init(_ row: Row) throws(PostgresError) {
        (version, content, digest, appliedAt, appliedBy) = try row.decode(
            Int32.self, String.self, Bytea.self, Timestamp.self, String.self)
    }

    /// Loads a version of an environment.
    ///
    /// - Parameter version: `nil`: the newest.
    /// - Returns: `nil` if there is none.
    package static func load(
        _ version: Int32?, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> KindVersion? {
        try connection.run(
            """
            SELECT \(columns) FROM realm.kind_version
            WHERE environment_id = \(environment.rawValue) AND (\(version)::int IS NULL OR version = \(version))
            ORDER BY version DESC LIMIT 1
            """
        ).first.map { row throws(PostgresError) in try KindVersion(row) }
    }

    /// Loads the newest version of an environment; `nil` if it has none.
    package static func newest(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> KindVersion? {
        try load(nil, in: environment, on: &connection)
    }

    /// Loads all versions of an environment, the newest first.
    package static func all(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [KindVersion] {
        try connection.run(
            """
            SELECT \(columns) FROM realm.kind_version
            WHERE environment_id = \(environment.rawValue) ORDER BY version DESC
            """
        ).map { row throws(PostgresError) in try KindVersion(row) }
    }

    /// Loads the number and the digest of the newest version; 0 and nothing if there is none.
    package static func head(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> (version: Int32, digest: Bytea) {
        try connection.run(
            """
            SELECT version, digest FROM realm.kind_version WHERE environment_id = \(environment.rawValue)
            ORDER BY version DESC LIMIT 1
            """
        ).first?.decode(Int32.self, Bytea.self) ?? (0, Bytea([]))
    }
}
