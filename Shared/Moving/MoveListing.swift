package import Essentials
package import Postgres

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

    /// All moves of the installation, by the environments' names. Not for a transaction.
    ///
    /// - Returns: None in a database whose schema does not know of moves yet.
    package static func all(on connection: inout Connection) throws -> [MoveListing] {
        let rows: Rows
        do throws(PostgresError) {
            // The last column is younger than the table.
            rows = try connection.run(
                """
                SELECT e.name, m.state, m.changed_at, m.moved_to, m.resume,
                    (to_jsonb(m)->>'discarded_at')::timestamptz
                FROM realm.move m JOIN realm.environment e ON e.id = m.environment_id ORDER BY e.name
                """)
        } catch {
            guard error.isOfMissingTable else { throw error }
            return []
        }
        return try rows.map { row in
            let (name, text, since, url, resume, discarded) = try row.decode(
                String.self, String.self, Timestamp.self, String?.self, String?.self, Timestamp?.self)
            let state = try MoveState(stored: text)
            return MoveListing(
                environment: name, state: state, since: since, movedTo: url, resume: state == .arriving ? resume : nil,
                discardedAt: discarded)
        }
    }
}
