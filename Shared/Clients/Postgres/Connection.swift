import Essentials
import Glibc

/// One connection to PostgreSQL, used by the thread that owns it.
///
/// A lost connection is opened again by the next call, after a growing pause with jitter when opening failed before.
package struct Connection: ~Copyable {
    private var handle: ConnectionHandle?
    private let conninfo: String
    private let limits: Limits
    private let check: StaticString?
    /// What `check` answered when the connection was opened first.
    private let history: String?
    /// Statement text → name of the prepared statement on the open connection.
    private var prepared: [String: String]
    private var openFailureCount = 0
    /// What was sent by `start` and not yet answered.
    private var started: (statements: [Statement], newNames: [Int: String])?
    private var finished: Result<[Rows], PostgresError>?
    /// The number of the session: what belongs to one, such as a lock, is gone when it grew, at once when it is lost.
    package private(set) var openCount = 1

    /// More texts than this are prepared anew at each use: the cache must not grow with a caller's mistakes.
    private static let preparedCountMax = 256
    private static let pauseMax = Duration.seconds(2)

    /// Opens the connection now.
    ///
    /// - Parameters:
    ///   - conninfo: A libpq connection string or URI; TLS is chosen in it (`sslmode=verify-full sslrootcert=…`).
    ///   - check: A statement that every session begins with. It fails, or answers one text: which history of the
    ///     database this is. A lost connection is not opened again to another one: its owner, who remembers things of
    ///     the former, gets an error that `isOfOtherHistory`. A database that does not know the statement is not
    ///     checked.
    package init(
        _ conninfo: String, limits: Limits = Limits(), check: StaticString? = nil
    ) throws(PostgresError) {
        let handle = try Self.connect(conninfo, limits)
        var prepared: [String: String] = [:]
        history = try Self.history(check, over: handle, &prepared, waitMax: limits.answerMax)
        self.prepared = prepared
        self.conninfo = conninfo
        self.limits = limits
        self.check = check
        self.handle = consume handle
    }

    /// Runs the statements in one round trip, as one transaction: all of them happen, or none.
    ///
    /// They travel as one pipeline, which PostgreSQL commits at its end or undoes at the first failure.
    /// - Returns: The rows of each statement, in their order.
    /// - Throws: The first failure. When the connection was lost, whether the transaction was committed is unknown.
    @discardableResult
    package mutating func run(_ statements: [Statement]) throws(PostgresError) -> [Rows] {
        try open()
        return try exchange(statements)
    }

    /// Runs one statement as a transaction of its own.
    @discardableResult
    package mutating func run(_ statement: Statement) throws(PostgresError) -> Rows {
        try run([statement])[0]
    }

    /// Commits what `body` did, or undoes all of it when `body` throws. For work that needs more than one round trip.
    @discardableResult
    package mutating func transaction<Success>(
        _ isolation: Isolation = .readCommitted, _ body: (inout Transaction) throws -> Success
    ) throws -> Success {
        try open()
        try exchange([isolation.begin])
        var transaction = Transaction(connection: self)
        let outcome = Result { try body(&transaction) }
        self = transaction.end()
        do {
            let success = try outcome.get()
            try checkHasNotFailed()
            try exchange(["COMMIT"])
            return success
        } catch {
            // The first failure is the one to report: a lost connection has undone everything already.
            _ = try? exchange(["ROLLBACK"])
            throw error
        }
    }

    /// PostgreSQL answers COMMIT of a failed transaction with success, so the state is asked before.
    private mutating func checkHasNotFailed() throws(PostgresError) {
        var hasFailed = true
        try closingIfLost { handle throws(PostgresError) in hasFailed = handle.hasFailedTransaction }
        if hasFailed {
            throw PostgresError(sqlState: "25P02", message: "a statement of the transaction failed and was passed over")
        }
    }

    /// Runs a file of SQL as one transaction. Only for schema files: the text is sent as it is.
    package mutating func runScript(_ text: String) throws(PostgresError) {
        try open()
        try closingIfLost { handle throws(PostgresError) in
            try handle.simple(text, waitMax: .seconds(600))
        }
    }

    /// Runs `COPY … TO STDOUT` and lends each chunk to `body`.
    ///
    /// - Throws: Also when the server fails on the way: the chunks so far are not all of it.
    package mutating func copyOut(_ text: StaticString, _ body: (UnsafeRawBufferPointer) -> Void) throws(PostgresError)
    {
        try open()
        let limit = limits.answerMax
        try closingIfLost { handle throws(PostgresError) in
            try unsafe handle.copyOut(text.description, waitMax: limit, body)
        }
    }

    // MARK: Opening

    private mutating func open() throws(PostgresError) {
        receiveStarted()
        if handle != nil { return }
        if openFailureCount > 0 {
            let grown = Duration.milliseconds(50) * (1 << min(openFailureCount, 6))
            let pause = Swift.min(grown, Self.pauseMax) * Double.random(in: 0.5...1)
            pauseThread(pause)
        }
        do throws(PostgresError) {
            let new = try Self.connect(conninfo, limits)
            prepared = [:]
            guard try Self.history(check, over: new, &prepared, waitMax: limits.answerMax) == history else {
                throw PostgresError(
                    sqlState: PostgresError.otherHistory, message: "the database was restored since this was begun")
            }
            handle = consume new
            openFailureCount = 0
        } catch {
            openFailureCount += 1
            throw error
        }
    }

    private static func connect(_ conninfo: String, _ limits: Limits) throws(PostgresError) -> ConnectionHandle {
        let handle = try ConnectionHandle(conninfo: conninfo, limits: limits)
        try handle.apply(limits)
        return handle
    }

    private static func history(
        _ check: StaticString?, over handle: borrowing ConnectionHandle, _ prepared: inout [String: String],
        waitMax: Duration
    ) throws(PostgresError) -> String? {
        guard let check else { return nil }
        do throws(PostgresError) {
            let question = [Statement(stringLiteral: check.description)]
            return try exchange(question, over: handle, prepared: &prepared, waitMax: waitMax)[0][0].decode(String.self)
        } catch {
            if ["42883", "3F000"].contains(error.sqlState) { return nil }
            // The text of the statement would hide what there is to do.
            throw PostgresError(sqlState: error.sqlState, message: error.message)
        }
    }

    private mutating func close() {
        handle = nil
        openCount += 1
        prepared.removeAll()
    }

    /// Drops the connection when `body` failed because of it.
    private mutating func closingIfLost(
        _ body: (borrowing ConnectionHandle) throws(PostgresError) -> Void
    ) throws(PostgresError) {
        guard let open = handle.take() else { throw PostgresError(sqlState: nil, message: "the connection was lost") }
        do {
            try body(open)
            handle = consume open
        } catch {
            if open.isOpen, !error.isConnectionLost { handle = consume open } else { close() }
            throw error
        }
    }

    // MARK: Exchange

    @discardableResult
    fileprivate mutating func exchange(_ statements: [Statement]) throws(PostgresError) -> [Rows] {
        var prepared = self.prepared
        let limit = limits.answerMax
        var answers: [Rows] = []
        do {
            try closingIfLost { handle throws(PostgresError) in
                answers = try Self.exchange(statements, over: handle, prepared: &prepared, waitMax: limit)
            }
        } catch {
            // A plan that no longer fits (0A000) or is no longer there (26000): prepare all anew.
            if ["0A000", "26000", "42P05"].contains(error.sqlState) {
                close()
            } else if handle != nil {
                self.prepared = prepared
            }
            throw error
        }
        self.prepared = prepared
        return answers
    }

    private static func exchange(
        _ statements: [Statement], over handle: borrowing ConnectionHandle, prepared: inout [String: String],
        waitMax: Duration
    ) throws(PostgresError) -> [Rows] {
        let newNames = try send(statements, over: handle, prepared: prepared, waitMax: waitMax)
        return try receive(statements, newNames, over: handle, prepared: &prepared, waitMax: waitMax)
    }

    /// - Returns: The names of the statements that are prepared on the way, by their index.
    private static func send(
        _ statements: [Statement], over handle: borrowing ConnectionHandle, prepared: [String: String],
        waitMax: Duration
    ) throws(PostgresError) -> [Int: String] {
        try handle.enterPipeline()
        var newNames: [Int: String] = [:]
        var pending = prepared
        for (index, statement) in statements.enumerated() {
            var name = pending[statement.text]
            if name == nil {
                let newName = pending.count < preparedCountMax ? "s\(pending.count)" : ""
                try handle.sendPrepare(newName, statement)
                if !newName.isEmpty { pending[statement.text] = newName }
                newNames[index] = newName
                name = newName
            }
            try handle.sendExecute(name ?? "", statement)
        }
        try handle.sync(waitMax: waitMax)
        return newNames
    }

    private static func receive(
        _ statements: [Statement], _ newNames: [Int: String], over handle: borrowing ConnectionHandle,
        prepared: inout [String: String], waitMax: Duration
    ) throws(PostgresError) -> [Rows] {
        var answers: [Rows] = []
        answers.reserveCapacity(statements.count)
        var failure: PostgresError?
        for (index, statement) in statements.enumerated() {
            if let name = newNames[index] {
                switch try handle.receive(statement, waitMax: waitMax) {
                case .success: if !name.isEmpty { prepared[statement.text] = name }
                case .failure(let error): failure = failure ?? error
                }
            }
            switch try handle.receive(statement, waitMax: waitMax) {
            case .success(let rows): answers.append(rows)
            case .failure(let error): failure = failure ?? error
            }
        }
        try handle.receiveSync(waitMax: waitMax)
        if let failure { throw failure }
        return answers
    }

    // MARK: Overlapping

    /// Sends the statements as `run` does, and returns without waiting for the answers: the caller prepares its next
    /// work while PostgreSQL does this one. Whatever is run next waits for it; `finish()` tells what came of it.
    package mutating func start(_ statements: [Statement]) throws(PostgresError) {
        precondition(started == nil && finished == nil, "one transaction at a time")
        try open()
        var newNames: [Int: String] = [:]
        let (prepared, limit) = (prepared, limits.answerMax)
        try closingIfLost { handle throws(PostgresError) in
            newNames = try Self.send(statements, over: handle, prepared: prepared, waitMax: limit)
        }
        started = (statements, newNames)
    }

    /// Takes in what has arrived of the answers to what was started, without waiting: PostgreSQL stops when the socket
    /// is full. A lost connection is told by `finish`.
    package func takeInStarted() {
        if started != nil { handle?.takeIn() }
    }

    /// Waits for the answers to what was started.
    @discardableResult
    package mutating func finish() throws(PostgresError) -> [Rows] {
        receiveStarted()
        return try finished.take()?.get() ?? []
    }

    /// Receives the answers to what was started, for `finish` to tell.
    private mutating func receiveStarted() {
        guard started != nil else { return }
        do throws(PostgresError) {
            finished = .success(try answersToStarted())
        } catch {
            finished = .failure(error)
        }
    }

    private mutating func answersToStarted() throws(PostgresError) -> [Rows] {
        guard let (statements, newNames) = started.take() else { return [] }
        var prepared = self.prepared
        var answers: [Rows] = []
        let limit = limits.answerMax
        defer { if handle != nil { self.prepared = prepared } }
        try closingIfLost { handle throws(PostgresError) in
            answers = try Self.receive(statements, newNames, over: handle, prepared: &prepared, waitMax: limit)
        }
        return answers
    }
}

/// What a transaction sees of others' commits.
package enum Isolation: Sendable {
    /// Each statement sees what was committed when it began.
    case readCommitted
    /// All statements see one snapshot; nothing may be written.
    case snapshot

    fileprivate var begin: Statement {
        switch self {
        case .readCommitted: "BEGIN"
        case .snapshot: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        }
    }
}

/// Statements that commit or fail together, lent to a closure: it cannot be copied out of it.
package struct Transaction: ~Copyable {
    private var connection: Connection

    fileprivate init(connection: consuming Connection) { self.connection = connection }

    fileprivate consuming func end() -> Connection { connection }

    /// Runs the statements in one round trip.
    @discardableResult
    package mutating func run(_ statements: [Statement]) throws(PostgresError) -> [Rows] {
        try connection.exchange(statements)
    }

    @discardableResult
    package mutating func run(_ statement: Statement) throws(PostgresError) -> Rows {
        try connection.exchange([statement])[0]
    }
}

/// Blocks the calling thread, which is a worker's own and not one of Swift's pool.
func pauseThread(_ duration: Duration) {
    _ = poll(nil, 0, Int32(clamping: duration.milliseconds))
}
