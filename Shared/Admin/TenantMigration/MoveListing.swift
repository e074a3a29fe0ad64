package import Essentials
package import Postgres
internal import Tenants

/// A move, for output.
package struct MoveListing: Encodable, Sendable {
    package let environment: String
    package let state: MoveState
    /// The time when it entered this state.
    package let since: Timestamp
    /// The base URL to which devices are redirected after the cut-over.
    package let movedTo: String?
    /// The value of `--resume` for an incomplete copy; `nil`: from the beginning.
    package let resume: String?
    /// The time when the deletion after a cut-over started.
    package let discardedAt: Timestamp?

    /// Returns all moves of the installation, by environment name.
    ///
    /// - Returns: An empty array for a schema without moves.
    package static func all(on connection: inout Connection) throws -> [MoveListing] {
        // The last column was added later than the table.
        let rows = try connection.runIfTableExists(
            """
            SELECT e.name, \(EnvironmentStore.moveState), m.changed_at, m.moved_to, m.resume,
                (to_jsonb(m)->>'discarded_at')::timestamptz
            FROM realm.move m JOIN realm.environment e ON e.id = m.environment_id ORDER BY e.name
            """)
        return try rows.map { rows in try rows.map(Self.init) } ?? []
    }

    /// Reads a row of ``all(on:)``.
    private init(_ row: Row) throws {
        let (name, text, time, url, resumePoint, discarded) = try row.decode(
            String.self, String.self, Timestamp.self, String?.self, String?.self, Timestamp?.self)
        (environment, state, since) = (name, try MoveState(stored: text), time)
        (movedTo, resume, discardedAt) = (url, state == .arriving ? resumePoint : nil, discarded)
    }
}
