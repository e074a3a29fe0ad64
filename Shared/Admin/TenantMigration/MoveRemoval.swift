internal import Model
package import Postgres

/// Removes an environment from the installation that it has left, or that it was to go to.
///
/// Rows go in pages, each in a transaction of its own: it may be stopped, and begun again.
package enum MoveRemoval {
    /// Rows of one statement.
    static let pageCountMax: Int64 = 5_000

    /// What tells devices that the environment has left, and where it went.
    private static let signposts = ["access.provider", "access.domain", "access.address"]

    /// Tables that stay when an environment goes elsewhere, before those that they refer to.
    package static let staying = [
        "onboarding.session", "blob.reference", "defect.command", "store.change", "realm.republish", "realm.move_part",
    ]

    /// Removes what arrived of an environment that has not begun.
    package static func discard(_ name: String, also audit: Statement, on connection: inout Connection) throws {
        try MoveStore.lockArriving(name, on: &connection)
        guard let move = try MoveStore.find(name, on: &connection), move.state == .arriving || move.state == .whole
        else { throw MoveFailure("\(name) is not arriving here") }
        // Before the first row is gone: what is left of it is not whole, and no stream goes on from where one stopped.
        try connection.run(
            """
            UPDATE realm.move SET state = 'arriving', resume = NULL, changed_at = now()
            WHERE environment_id = \(move.environment.rawValue)
            """)
        _ = try empty(tables(but: []), of: move, on: &connection)
        try end(move, also: audit, on: &connection)
    }

    /// Removes what stays of an environment that has left.
    ///
    /// - Parameter signpost: Whether devices are told on where it is. Without it nothing of the environment is left,
    ///   and it can come back to this installation.
    /// - Returns: How many rows were removed.
    package static func discardLeft(
        _ name: String, keepingSignpost signpost: Bool, also audit: Statement, on connection: inout Connection
    ) throws -> Int {
        guard let move = try MoveStore.find(name, on: &connection), move.state == .left else {
            throw MoveFailure("\(name) has not left")
        }
        // Before the first row is gone: from now on it is not whole any more, and is not sent again.
        try MoveStore.patiently(on: &connection) { connection in
            _ = try connection.run(
                """
                UPDATE realm.move SET discarded_at = coalesce(discarded_at, now())
                WHERE environment_id = \(move.environment.rawValue) AND state = 'left'
                """)
        }
        let count = try empty(tables(but: signpost ? signposts : []), of: move, on: &connection)
        if signpost {
            // Its login is of the new place alone.
            let environment = move.environment.rawValue
            try MoveStore.patiently(on: &connection) { connection in
                _ = try connection.run([
                    discarding(move),
                    """
                    UPDATE access.provider SET client_id = NULL, client_secret = NULL
                    WHERE environment_id = \(environment) AND client_id IS NOT NULL
                    """,
                    audit,
                ])
            }
            return count
        }
        for table in MovedTable.held {
            try MoveStore.patiently(on: &connection) {
                _ = try $0.run("SELECT realm.let_go(\(move.environment.rawValue), \(table)::regclass)")
            }
        }
        try end(move, also: audit, on: &connection)
        return count
    }

    private static func tables(but kept: [String]) -> [String] {
        (staying + MovedTable.all.reversed().map(\.name)).filter { !kept.contains($0) }
    }

    private static func empty(
        _ tables: [String], of move: MoveStore.Move, on connection: inout Connection
    ) throws -> Int {
        let environment = move.environment.rawValue
        var count = 0
        for table in tables {
            let name = Statement(stringLiteral: table)
            while true {
                let removed = try MoveStore.patiently(on: &connection) { connection in
                    try connection.run([
                        discarding(move),
                        """
                        DELETE FROM \(name) WHERE environment_id = \(environment) AND ctid = ANY (ARRAY(
                            SELECT ctid FROM \(name) WHERE environment_id = \(environment) LIMIT \(pageCountMax)))
                        """,
                    ])[1].affectedCount
                }
                count += removed
                if removed == 0 { break }
            }
        }
        return count
    }

    /// Lets this transaction remove what nobody else may write.
    private static func discarding(_ move: MoveStore.Move) -> Statement {
        "SELECT set_config('fieldpost.discarding', \(String(move.environment.rawValue)), true)"
    }

    private static func end(_ move: MoveStore.Move, also audit: Statement, on connection: inout Connection) throws {
        let environment = move.environment.rawValue
        try MoveStore.patiently(on: &connection) { connection in
            _ = try connection.run([
                "DELETE FROM realm.relay WHERE environment_id = \(environment)",
                "DELETE FROM realm.move WHERE environment_id = \(environment)",
                "DELETE FROM realm.environment WHERE id = \(environment)",
                audit,
            ])
        }
    }
}
