internal import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// What a move could not do, in one line.
package struct MoveFailure: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

/// Where an environment's move is.
package enum MoveState: String, Encodable, Sendable {
    case copying, held, left, arriving, whole, begun

    init(stored text: String) throws {
        guard let state = MoveState(rawValue: text) else {
            throw MoveFailure("a move is '\(text)', which is not known")
        }
        self = state
    }
}

/// The SQL of `realm.move`, and of holding an environment.
package enum MoveStore {
    /// A move that is under way.
    package struct Move: Sendable {
        package let environment: EnvironmentID
        package let id: String
        package let state: MoveState
        /// Whether what stayed of it has begun to be removed.
        package let isDiscarded: Bool
    }

    /// For sessions that move: pages are large, and locks are waited for briefly, so that nobody waits behind them.
    package static var limits: Limits {
        var limits = Limits(lockMax: .milliseconds(200))
        (limits.statementMax, limits.idleInTransactionMax) = (.seconds(600), .seconds(600))
        return limits
    }

    /// How often a lock is tried for, each time for `lockMax`.
    private static let attemptsMax = 600

    /// - Returns: `nil` when the environment does not move, or is not there.
    package static func find(_ name: String, on connection: inout Connection) throws -> Move? {
        let rows = try read(
            """
            SELECT m.environment_id, m.move_id::text, m.state, m.discarded_at IS NOT NULL
            FROM realm.move m JOIN realm.environment e ON e.id = m.environment_id WHERE e.name = \(name)
            """, on: &connection)
        guard
            let (environment, id, text, isDiscarded) = try rows.first?
                .decode(EnvironmentID.self, String.self, String.self, Bool.self)
        else { return nil }
        return Move(environment: environment, id: id, state: try MoveState(stored: text), isDiscarded: isDiscarded)
    }

    /// Keeps other sessions from taking in the environment, or removing what arrived of it, until the connection ends.
    /// A session that comes second does not know what the first still has in hand.
    ///
    /// A client that was killed, or whose host is lost, keeps it until the server notices, by
    /// `client_connection_check_interval` and the keepalives of the session; that is waited for.
    ///
    /// - Throws: ``MoveFailure`` if another session keeps it, or changed the move meanwhile.
    static func lockArriving(_ name: String, on connection: inout Connection) throws {
        let lock: Statement = "(\(arrivingLockSpace), hashtext(\(name)))"
        if try connection.run("SELECT pg_try_advisory_lock\(lock)")[0].decode(Bool.self) { return }
        let busy = MoveFailure(
            "another import, begin or discard of \(name) is in progress here: wait for it, or end it")
        let before = try progress(of: name, on: &connection)
        do {
            try patiently(attemptsMax: arrivingAttemptsMax, on: &connection) {
                _ = try $0.run("SELECT pg_advisory_lock\(lock)")
            }
        } catch let error as PostgresError where error.isLocked {
            throw busy
        }
        guard try progress(of: name, on: &connection) == before else { throw busy }
    }

    /// What a session that takes in an environment changes.
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

    /// Begins to move an environment away, or goes on with it.
    static func leave(_ name: String, on connection: inout Connection) throws -> Move {
        try patiently(on: &connection) { connection in
            _ = try connection.run(
                """
                INSERT INTO realm.move (environment_id, move_id, state)
                SELECT id, gen_random_uuid(), 'copying' FROM realm.environment WHERE name = \(name)
                ON CONFLICT (environment_id) DO UPDATE SET move_id = excluded.move_id, state = 'copying',
                    moved_to = NULL, changed_at = now()
                WHERE realm.move.state = 'begun'
                """)
        }
        guard let move = try find(name, on: &connection) else { throw MoveFailure("there is no environment \(name)") }
        switch move.state {
        case .left where move.isDiscarded:
            throw MoveFailure("\(name) has left, and what stayed of it was removed: it cannot be sent again")
        // One that has left is held as it was: it can be sent again when what arrived is lost before it begins there.
        case .copying, .held, .left: return move
        case .arriving, .whole: throw MoveFailure("\(name) is arriving here, and has not begun")
        case .begun: throw MoveFailure("another move of \(name) was begun in this moment; try again")
        }
    }

    /// Stops all writing of the environment. What was begun is committed, or refused.
    ///
    /// - Throws: ``MoveFailure`` when it was taken back, or discarded, meanwhile: then nothing more is stopped.
    static func hold(_ move: Move, on connection: inout Connection) throws {
        try patiently(on: &connection) { connection in
            _ = try connection.run(
                """
                UPDATE realm.move SET state = 'held', changed_at = now()
                WHERE environment_id = \(move.environment.rawValue) AND move_id = \(move.id)::text::uuid
                    AND state = 'copying'
                """)
        }
        for table in MovedTable.held {
            try patiently(on: &connection) { connection in
                // The move's row is locked until the table is held: who takes the environment back waits for that.
                let held = try connection.run(
                    """
                    SELECT realm.hold(m.environment_id, \(table)::regclass)
                    FROM (SELECT environment_id FROM realm.move
                        WHERE environment_id = \(move.environment.rawValue) AND move_id = \(move.id)::text::uuid
                            AND state IN ('held', 'left') AND discarded_at IS NULL
                        FOR SHARE) m
                    """)
                guard held.count == 1 else {
                    throw MoveFailure("the environment was taken back, or discarded, meanwhile")
                }
            }
        }
    }

    /// - Throws: ``MoveFailure`` unless the environment is held for this move, as it was when it was sent, and whole.
    static func requireHeld(_ move: Move, on connection: inout Connection) throws {
        let rows = try connection.run(
            """
            SELECT FROM realm.move WHERE environment_id = \(move.environment.rawValue)
                AND move_id = \(move.id)::text::uuid AND state IN ('held', 'left') AND discarded_at IS NULL
            """)
        guard rows.count == 1 else { throw MoveFailure("the environment was taken back, or discarded, meanwhile") }
    }

    /// Holds what may have left already: a database that was restored does not know what became of the moves that were
    /// under way in it.
    ///
    /// - Returns: The names of the environments of which that is to be found out.
    package static func holdLeaving(on connection: inout Connection) throws -> [String] {
        let names = try connection.run(
            """
            SELECT e.name FROM realm.move m JOIN realm.environment e ON e.id = m.environment_id
            WHERE m.state IN ('copying', 'held') ORDER BY e.name
            """
        ).decode(String.self)
        for name in names {
            guard let move = try find(name, on: &connection) else { continue }
            try hold(move, on: &connection)
        }
        return names
    }

    /// The old place goes on: with another generation, so that whatever was sent on is of a former one, and with
    /// positions beyond all that were handed out, also when the database was restored while it was held.
    ///
    /// The move is another one from the first statement on: no receipt of it is good any more, and nothing is held for
    /// it.
    package static func takeBack(_ move: Move, also audit: Statement, on connection: inout Connection) throws {
        let environment = move.environment.rawValue
        // Who is just holding a table has the row; once it is another move nothing more is held.
        let own = try patiently(on: &connection) { connection in
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
            throw MoveFailure("the environment has left meanwhile, or somebody else took it back")
        }
        do {
            try letGo(environment, of: own, also: audit, on: &connection)
        } catch let error as PostgresError where error.isLocked {
            throw MoveFailure(
                "somebody has used a table for two minutes, such as a backup: the environment is still held; take it "
                    + "back once more")
        }
    }

    /// Table by table, the counter last, in the transaction that ends the move.
    private static func letGo(
        _ environment: Int32, of own: String, also audit: Statement, on connection: inout Connection
    ) throws {
        let (counter, others) = (MovedTable.held[0], MovedTable.held.dropFirst())
        for table in others.reversed() {
            try patiently(on: &connection) { _ = try $0.run("SELECT realm.let_go(\(environment), \(table)::regclass)") }
        }
        // Nobody writes it before it has its new generation and positions.
        try patiently(on: &connection) { connection in
            try connection.transaction { transaction in
                // An export that began meanwhile holds tables that were let go already.
                let ended = try transaction.run(
                    """
                    DELETE FROM realm.move
                    WHERE environment_id = \(environment) AND move_id = \(own)::text::uuid AND state = 'copying'
                    """)
                guard ended.affectedCount == 1 else {
                    throw MoveFailure("another export began meanwhile: take the environment back once more")
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

    /// The environment has left for good: only now may it begin elsewhere.
    ///
    /// - Throws: ``MoveFailure`` when it was taken back meanwhile.
    package static func markLeft(
        _ move: Move, to url: String?, also audit: Statement, on connection: inout Connection
    ) throws {
        try patiently(on: &connection) { connection in
            try connection.transaction { transaction in
                let marked = try transaction.run(
                    """
                    UPDATE realm.move SET state = 'left', moved_to = \(url), changed_at = now()
                    WHERE environment_id = \(move.environment.rawValue) AND move_id = \(move.id)::text::uuid
                        AND state = 'held'
                    """)
                guard marked.affectedCount == 1 else { throw MoveFailure("the environment was taken back meanwhile") }
                try transaction.run(audit)
            }
        }
    }

    /// Reads behind whoever waits for a table, such as to let another environment's go.
    static func read(_ statement: Statement, on connection: inout Connection) throws -> Rows {
        try patiently(on: &connection) { try $0.run(statement) }
    }

    /// Tries again as long as somebody has the lock that is needed.
    static func patiently<Success>(
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
