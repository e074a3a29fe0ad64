package import Essentials
internal import FoundationEssentials
package import Model
import ObjectStore
package import Postgres
internal import Tenants

/// A failure of a move, in one line.
package struct MoveFailure: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

/// The state of an environment's move, as in `realm.move.state`.
package enum MoveState: String, Encodable, PostgresValue {
    case copying, held, left, arriving, whole, begun
}

/// Queries of `realm.move`, and the write-block of an environment.
package enum MoveStore {
    /// A stored move.
    package struct Move: Sendable {
        package let environment: EnvironmentID
        package let id: String
        package let state: MoveState
        /// Whether the deletion after the cut-over has started.
        package let isDiscarded: Bool
    }

    /// Limits of sessions for moves: pages are large, and lock timeouts are short, so that other sessions do not queue
    /// behind them.
    package static var limits: Limits {
        var limits = Limits(lockMax: .milliseconds(200))
        (limits.statementMax, limits.idleInTransactionMax) = (.seconds(600), .seconds(600))
        return limits
    }

    /// Maximum number of attempts to get a lock, each for `lockMax`.
    private static let attemptsMax = 600

    /// - Returns: `nil` if the environment has no move, or does not exist.
    package static func find(_ name: String, on connection: inout Connection) throws -> Move? {
        try read(
            """
            SELECT m.environment_id, m.move_id::text, m.state, m.discarded_at IS NOT NULL
            FROM realm.move m JOIN realm.environment e ON e.id = m.environment_id WHERE e.name = \(name)
            """, on: &connection
        ).decode(EnvironmentID.self, String.self, MoveState.self, Bool.self)
            .map { Move(environment: $0, id: $1, state: $2, isDiscarded: $3) }.first
    }

    /// Locks the copy against other imports, activations and deletions, until the connection ends.
    ///
    /// The lock of a killed client, or of a lost host, remains until the server notices, by
    /// `client_connection_check_interval` and the session's keepalives; the function waits for that.
    ///
    /// - Throws: ``MoveFailure`` if another session holds the lock, or changed the move meanwhile.
    static func lockArriving(_ name: String, on connection: inout Connection) throws {
        let lock: Statement = "(\(arrivingLockSpace), hashtext(\(name)))"
        if try connection.run("SELECT pg_try_advisory_lock\(lock)")[0].decode(Bool.self) { return }
        let busy = MoveFailure(
            "another import, activate or discard of \(name) is in progress here: wait for it, or end it")
        let before = try progress(of: name, on: &connection)
        do {
            try retryingLocks(attemptsMax: arrivingAttemptsMax, on: &connection) {
                _ = try $0.run("SELECT pg_advisory_lock\(lock)")
            }
        } catch let error as PostgresError where error.isLocked {
            throw busy
        }
        guard try progress(of: name, on: &connection) == before else { throw busy }
    }

    /// The values that an importing session changes.
    private static func progress(of name: String, on connection: inout Connection) throws -> String? {
        try read(
            """
            SELECT (m.move_id, m.state, m.resume, m.changed_at)::text
            FROM realm.move m JOIN realm.environment e ON e.id = m.environment_id WHERE e.name = \(name)
            """, on: &connection
        ).first?.decode(String.self)
    }

    /// 15 s.
    private static let arrivingAttemptsMax = 75
    private static let arrivingLockSpace: Int32 = 0x6172_7269

    /// Starts the move of an environment to another installation, or resumes it.
    static func start(_ name: String, on connection: inout Connection) throws -> Move {
        try retryingLocks(on: &connection) { connection in
            _ = try connection.run(
                """
                INSERT INTO realm.move (environment_id, move_id, state)
                SELECT id, gen_random_uuid(), 'copying' FROM realm.environment WHERE name = \(name)
                -- A schema file that is being applied is moved; later ones are rejected.
                FOR KEY SHARE
                ON CONFLICT (environment_id) DO UPDATE SET move_id = excluded.move_id, state = 'copying',
                    moved_to = NULL, changed_at = now()
                WHERE realm.move.state = 'begun'
                """)
        }
        guard let move = try find(name, on: &connection) else {
            throw MoveFailure("environment \(name) does not exist")
        }
        switch move.state {
        case .left where move.isDiscarded:
            throw MoveFailure("\(name) was cut over and deleted here: it cannot be exported again")
        // After a cut-over the rows are unchanged: they can be exported again if the inactive copy is lost.
        case .copying, .held, .left: return move
        case .arriving, .whole: throw MoveFailure("\(name) is an inactive copy here")
        case .begun: throw MoveFailure("another move of \(name) started meanwhile; run it again")
        }
    }

    /// Blocks all writes of the environment. Transactions in progress commit, or fail.
    ///
    /// - Throws: ``MoveFailure`` if the move was rolled back or discarded meanwhile; then no further table is blocked.
    static func writeBlock(_ move: Move, on connection: inout Connection) throws {
        try retryingLocks(on: &connection) { connection in
            _ = try connection.run(
                """
                UPDATE realm.move SET state = 'held', changed_at = now()
                WHERE environment_id = \(move.environment.rawValue) AND move_id = \(move.id)::text::uuid
                    AND state = 'copying'
                """)
        }
        for table in MovedTable.writeBlocked {
            try retryingLocks(on: &connection) { connection in
                // The move's row stays locked until the table is blocked: a rollback waits for that.
                let blocked = try connection.run(
                    """
                    SELECT realm.hold(m.environment_id, \(table)::regclass)
                    FROM (SELECT environment_id FROM realm.move
                        WHERE environment_id = \(move.environment.rawValue) AND move_id = \(move.id)::text::uuid
                            AND state IN ('held', 'left') AND discarded_at IS NULL
                        FOR SHARE) m
                    """)
                guard blocked.count == 1 else {
                    throw MoveFailure("the move was rolled back or discarded meanwhile")
                }
            }
        }
    }

    /// - Throws: ``MoveFailure`` unless the environment is still write-blocked for this move, and complete.
    static func requireWriteBlock(_ move: Move, on connection: inout Connection) throws {
        let rows = try connection.run(
            """
            SELECT FROM realm.move WHERE environment_id = \(move.environment.rawValue)
                AND move_id = \(move.id)::text::uuid AND state IN ('held', 'left') AND discarded_at IS NULL
            """)
        guard rows.count == 1 else { throw MoveFailure("the move was rolled back or discarded meanwhile") }
    }

    /// Write-blocks environments that may have been cut over: a restored database does not have the results of the
    /// moves that were in progress.
    ///
    /// - Returns: The names of the environments whose state an operator must determine.
    package static func writeBlockLeaving(on connection: inout Connection) throws -> [String] {
        let names = try connection.run(
            """
            SELECT e.name FROM realm.move m JOIN realm.environment e ON e.id = m.environment_id
            WHERE m.state IN ('copying', 'held') ORDER BY e.name
            """
        ).decode(String.self)
        for name in names {
            guard let move = try find(name, on: &connection) else { continue }
            try writeBlock(move, on: &connection)
        }
        return names
    }

    /// Reactivates the environment with a new generation, so that later copies are outdated, and with positions beyond
    /// all allocated ones, even if the database was restored during the write-block.
    ///
    /// The first statement changes the move's id: its receipt becomes invalid, and no further table is blocked for it.
    package static func rollBack(_ move: Move, also audit: Statement, on connection: inout Connection) throws {
        let environment = move.environment.rawValue
        // A session that is blocking a table holds the row; after the id changed it blocks no more.
        let own = try retryingLocks(on: &connection) { connection in
            try connection.run(
                """
                UPDATE realm.move SET move_id = gen_random_uuid(), state = 'copying', changed_at = now()
                WHERE environment_id = \(environment) AND move_id = \(move.id)::text::uuid
                    AND state IN ('copying', 'held')
                RETURNING move_id::text
                """
            ).first?.decode(String.self)
        }
        guard let own else {
            throw MoveFailure("the environment was cut over meanwhile, or another session rolled it back")
        }
        do {
            try unblock(environment, of: own, also: audit, on: &connection)
        } catch let error as PostgresError where error.isLocked {
            throw MoveFailure(
                "a table was locked for two minutes, such as by a backup: the environment is still write-blocked; run "
                    + "roll-back again")
        }
    }

    /// Unblocks table by table, the counter last, in the transaction that ends the move.
    private static func unblock(
        _ environment: Int32, of own: String, also audit: Statement, on connection: inout Connection
    ) throws {
        let (counter, others) = (MovedTable.writeBlocked[0], MovedTable.writeBlocked.dropFirst())
        for table in others.reversed() {
            try retryingLocks(on: &connection) {
                _ = try $0.run("SELECT realm.let_go(\(environment), \(table)::regclass)")
            }
        }
        // No client can write before the new generation and positions are set.
        try retryingLocks(on: &connection) { connection in
            try connection.transaction { transaction in
                // An export that started meanwhile has blocked tables again.
                let ended = try transaction.run(
                    """
                    DELETE FROM realm.move
                    WHERE environment_id = \(environment) AND move_id = \(own)::text::uuid AND state = 'copying'
                    """)
                guard ended.affectedCount == 1 else {
                    throw MoveFailure("another export started meanwhile: run roll-back again")
                }
                try transaction.run([
                    "SELECT realm.let_go(\(environment), \(counter)::regclass)",
                    """
                    UPDATE realm.environment SET generation = \(Lineage.nextGeneration),
                        position = \(Lineage.nextPosition)
                    WHERE id = \(environment)
                    """,
                    audit,
                ])
            }
        }
    }

    /// Marks the environment as cut over, permanently. Only then may it be activated elsewhere.
    ///
    /// - Throws: ``MoveFailure`` if the move was rolled back meanwhile.
    package static func markCutOver(
        _ move: Move, to url: String?, also audit: Statement, on connection: inout Connection
    ) throws {
        try retryingLocks(on: &connection) { connection in
            try connection.transaction { transaction in
                let marked = try transaction.run(
                    """
                    UPDATE realm.move SET state = 'left', moved_to = \(url), changed_at = now()
                    WHERE environment_id = \(move.environment.rawValue) AND move_id = \(move.id)::text::uuid
                        AND state = 'held'
                    """)
                guard marked.affectedCount == 1 else { throw MoveFailure("the move was rolled back meanwhile") }
                try transaction.run(audit)
            }
        }
    }

    /// Reads a table although another session waits for its lock.
    static func read(_ statement: Statement, on connection: inout Connection) throws -> Rows {
        try retryingLocks(on: &connection) { try $0.run(statement) }
    }

    /// Retries while another session holds a lock that is needed.
    static func retryingLocks<Success>(
        attemptsMax: Int = attemptsMax, on connection: inout Connection, _ body: (inout Connection) throws -> Success
    ) throws -> Success {
        var attempt = 1
        while true {
            do {
                return try body(&connection)
            } catch let error as PostgresError where error.isLocked || error.sqlState == "40P01" {
                guard attempt < attemptsMax else { throw error }
                attempt += 1
            }
        }
    }
}

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
        let moves = try rows?.decode(
            String.self, MoveState.self, Timestamp.self, String?.self, String?.self, Timestamp?.self)
        return (moves ?? []).map {
            MoveListing(
                environment: $0, state: $1, since: $2, movedTo: $3, resume: $1 == .arriving ? $4 : nil, discardedAt: $5)
        }
    }
}
