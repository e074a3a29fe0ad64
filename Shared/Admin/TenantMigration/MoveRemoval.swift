package import Model
package import Postgres

/// Deletes an environment that was cut over, or an inactive copy.
///
/// Rows are deleted in pages, each in its own transaction: the deletion can be interrupted and run again.
package enum MoveRemoval {
    /// Maximum number of rows per statement.
    static let pageCountMax: Int64 = 5_000

    /// Tables of the redirect record, by which devices are redirected.
    private static let redirectTables = ["access.provider", "access.domain", "access.address"]

    /// Tables that are not moved, in the order of deletion. The removal then deletes the rows of `realm.relay`, the
    /// progress in the source's Kafka, of `realm.move` and of `realm.environment`.
    package static let staying = [
        // A device in onboarding starts again at the destination.
        "onboarding.session",
        // Created from the objects by their triggers.
        "blob.reference", "defect.command", "delivery.device",
        // A change that is decided at the destination notifies its author, too.
        "device.task_author",
        // Devices reset with the generation, and the relay republishes all published kinds.
        "store.change", "realm.republish",
        "realm.move_part",
    ]

    /// Deletes an inactive copy.
    package static func discard(_ name: String, also audit: Statement, on connection: inout Connection) throws {
        try MoveStore.lockArriving(name, on: &connection)
        guard let move = try MoveStore.find(name, on: &connection), move.state == .arriving || move.state == .whole
        else { throw MoveFailure("\(name) has no inactive copy here") }
        // First marks the copy as incomplete, so that no stream resumes it.
        try connection.run(
            """
            UPDATE realm.move SET state = 'arriving', resume = NULL, changed_at = now()
            WHERE environment_id = \(move.environment.rawValue)
            """)
        _ = try empty(tables(except: []), of: move, on: &connection)
        try end(move, also: audit, on: &connection)
    }

    /// Deletes the rows of an environment that was cut over.
    ///
    /// - Parameter keepsRedirect: Whether devices are still redirected. Otherwise nothing of the environment is left,
    ///   and it can be moved back to this installation.
    /// - Returns: The number of deleted rows.
    package static func discardSource(
        _ name: String, keepingRedirect keepsRedirect: Bool, also audit: Statement, on connection: inout Connection
    ) throws -> Int {
        guard let move = try MoveStore.find(name, on: &connection), move.state == .left else {
            throw MoveFailure("\(name) was not cut over")
        }
        // First marks the rows as incomplete, so that they are not exported again.
        try MoveStore.retryingLocks(on: &connection) { connection in
            _ = try connection.run(
                """
                UPDATE realm.move SET discarded_at = coalesce(discarded_at, now())
                WHERE environment_id = \(move.environment.rawValue) AND state = 'left'
                """)
        }
        let count = try empty(tables(except: keepsRedirect ? redirectTables : []), of: move, on: &connection)
        if keepsRedirect {
            // Only the destination has its login.
            let environment = move.environment.rawValue
            try MoveStore.retryingLocks(on: &connection) { connection in
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
        for table in MovedTable.writeBlocked {
            try MoveStore.retryingLocks(on: &connection) {
                _ = try $0.run("SELECT realm.let_go(\(move.environment.rawValue), \(table)::regclass)")
            }
        }
        try end(move, also: audit, on: &connection)
        return count
    }

    /// Deletes an environment with all its rows, and without a copy elsewhere. It can be interrupted and run again.
    ///
    /// - Returns: The number of deleted rows.
    package static func remove(_ name: String, also audit: Statement, on connection: inout Connection) throws -> Int {
        if try MoveStore.find(name, on: &connection)?.state != .left {
            let move = try MoveStore.start(name, on: &connection)
            try MoveStore.writeBlock(move, on: &connection)
            try MoveStore.markCutOver(move, to: nil, also: "SELECT", on: &connection)
        }
        return try discardSource(name, keepingRedirect: false, also: audit, on: &connection)
    }

    /// Counts the rows that ``remove(_:also:on:)`` deletes, by table.
    package static func counts(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [(table: String, count: Int)] {
        let tables = tables(except: [])
        let results = try connection.run(
            tables.map { table -> Statement in
                let name = Statement(stringLiteral: table)
                return "SELECT count(*) FROM \(name) WHERE environment_id = \(environment.rawValue)"
            })
        var counts: [(table: String, count: Int)] = []
        for (table, rows) in zip(tables, results) {
            counts.append((table, Int(try rows[0].decode(Int64.self))))
        }
        return counts
    }

    private static func tables(except excluded: [String]) -> [String] {
        (staying + MovedTable.all.reversed().map(\.name)).filter { !excluded.contains($0) }
    }

    private static func empty(
        _ tables: [String], of move: MoveStore.Move, on connection: inout Connection
    ) throws -> Int {
        let environment = move.environment.rawValue
        var count = 0
        for table in tables {
            let name = Statement(stringLiteral: table)
            while true {
                let removed = try MoveStore.retryingLocks(on: &connection) { connection in
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

    /// Allows this transaction to delete write-blocked rows.
    private static func discarding(_ move: MoveStore.Move) -> Statement {
        "SELECT set_config('fieldpost.discarding', \(String(move.environment.rawValue)), true)"
    }

    private static func end(_ move: MoveStore.Move, also audit: Statement, on connection: inout Connection) throws {
        let environment = move.environment.rawValue
        try MoveStore.retryingLocks(on: &connection) { connection in
            _ = try connection.run([
                "DELETE FROM realm.relay WHERE environment_id = \(environment)",
                "DELETE FROM realm.move WHERE environment_id = \(environment)",
                "DELETE FROM realm.environment WHERE id = \(environment)",
                audit,
            ])
        }
    }
}
