package import Essentials
package import Postgres
internal import Tenants

/// A move as it is told to people.
package struct MoveListing: Encodable, Sendable {
    package let environment: String
    package let state: MoveState
    /// Since when it is in this state.
    package let since: Timestamp
    /// Where its devices find it, when it has left.
    package let movedTo: String?
    /// With which `--resume` the other side goes on, when it arrives; `nil`: from the beginning.
    package let resume: String?
    /// When what stays of it began to be removed.
    package let discardedAt: Timestamp?

    /// All moves of the installation, by the environments' names.
    ///
    /// - Returns: None in a database whose schema does not know of moves yet.
    package static func all(on connection: inout Connection) throws -> [MoveListing] {
        // The last column is younger than the table.
        let rows = try connection.runWhereThere(
            """
            SELECT e.name, \(EnvironmentStore.moveState), m.changed_at, m.moved_to, m.resume,
                (to_jsonb(m)->>'discarded_at')::timestamptz
            FROM realm.move m JOIN realm.environment e ON e.id = m.environment_id ORDER BY e.name
            """)
        return try rows.map { rows in try rows.map(Self.init) } ?? []
    }

    /// Reads a row of ``all(on:)``.
    private init(_ row: Row) throws {
        let (name, text, time, url, place, discarded) = try row.decode(
            String.self, String.self, Timestamp.self, String?.self, String?.self, Timestamp?.self)
        (environment, state, since) = (name, try MoveState(stored: text), time)
        (movedTo, resume, discardedAt) = (url, state == .arriving ? place : nil, discarded)
    }
}
