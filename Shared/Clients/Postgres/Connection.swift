package import Essentials
import Glibc

/// A connection to PostgreSQL, used by the thread that owns it.
///
/// The next call reopens a lost connection, with exponential backoff and jitter after failed attempts.
package struct Connection: ~Copyable {
    private var handle: ConnectionHandle?
    private let conninfo: String
    private let limits: Limits
    private let check: StaticString?
    /// The result of `check` when the connection was first opened.
    private let timeline: String?
    /// The names of prepared statements of the open connection, by text.
    private var prepared: [String: String]
    private var openFailureCount = 0
    /// The statements sent by `start` whose results were not received yet.
    private var started: (statements: [Statement], newNames: [Int: String])?
    private var finished: Result<[Rows], PostgresError>?
    /// Whether a notification has arrived since `waitForNotification` returned.
    private var wasNotified = false
    /// The session's number, which increases when the connection is lost: session state such as locks is then gone.
    package private(set) var openCount = 1

    /// Maximum number of cached prepared statements; further ones are prepared at each use.
    private static let preparedCountMax = 256
    private static let pauseMax = Duration.seconds(2)

    /// Opens the connection.
    ///
    /// - Parameters:
    ///   - conninfo: A libpq connection string or URI, including the TLS settings (`sslmode`, `sslrootcert`).
    ///   - check: A statement that runs first in every session. It fails or returns one text that identifies the
    ///     database's timeline. A lost connection is not reopened on a different timeline: its owner gets an error
    ///     whose `isTimelineChange` is true. A database without the statement's function is not checked.
    package init(
        _ conninfo: String, limits: Limits = Limits(), check: StaticString? = nil
    ) throws(PostgresError) {
        let handle = try Self.connect(conninfo, limits)
        var prepared: [String: String] = [:]
        timeline = try Self.timeline(check, over: handle, &prepared, waitMax: limits.resultMax)
        self.prepared = prepared
        self.conninfo = conninfo
        self.limits = limits
        self.check = check
        self.handle = consume handle
    }

    /// Runs the statements in one round trip, as one transaction: all of them take effect, or none.
    ///
    /// They are sent as one pipeline, which PostgreSQL commits at its end or rolls back at the first failure.
    /// - Returns: The rows of each statement, in order.
    /// - Throws: The first failure. If the connection was lost, it is unknown whether the transaction was committed.
    @discardableResult
    package mutating func run(_ statements: [Statement]) throws(PostgresError) -> [Rows] {
        try open()
        return try exchange(statements)
    }

    /// Runs one statement as a separate transaction.
    @discardableResult
    package mutating func run(_ statement: Statement) throws(PostgresError) -> Rows {
        try run([statement])[0]
    }

    /// Commits the statements of `body`, or rolls back if `body` throws. For transactions with several round trips.
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
            try requireNotFailed()
            try exchange(["COMMIT"])
            return success
        } catch {
            // Report the first failure: after a lost connection everything is rolled back already.
            _ = try? exchange(["ROLLBACK"])
            throw error
        }
    }

    /// PostgreSQL responds to COMMIT of a failed transaction with success, so the state is checked before.
    private mutating func requireNotFailed() throws(PostgresError) {
        if try closingIfLost({ handle throws(PostgresError) in handle.hasFailedTransaction }) {
            throw PostgresError(
                sqlState: "25P02", message: "a statement of the transaction failed and its error was ignored")
        }
    }

    /// Runs an SQL script as one transaction. Only for schema files: the text is sent unchanged.
    package mutating func runScript(_ text: String) throws(PostgresError) {
        try open()
        try closingIfLost { handle throws(PostgresError) in
            try handle.simple(text, waitMax: .seconds(600))
        }
    }

    /// Runs `COPY … TO STDOUT` and passes each chunk to `body`.
    ///
    /// - Throws: Also if the server fails during the copy: the chunks are then incomplete.
    package mutating func copyOut(_ text: StaticString, _ body: (UnsafeRawBufferPointer) -> Void) throws(PostgresError)
    {
        try open()
        let limit = limits.resultMax
        try closingIfLost { handle throws(PostgresError) in
            try unsafe handle.copyOut(text.description, waitMax: limit, body)
        }
    }

    /// Waits until a channel to which the session listens is notified, or `wakeup` is signalled. One notification that
    /// arrived since the last call is enough. A lost connection loses them: the caller also polls.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: If the connection was lost. The next statement opens a session that does not listen.
    @discardableResult
    package mutating func waitForNotification(
        atMost waitMax: Duration, or wakeup: Wakeup
    ) throws(PostgresError) -> Bool {
        receiveStarted()
        if wasNotified {
            wasNotified = false
            return true
        }
        return try closingIfLost { handle throws(PostgresError) in
            try handle.waitForNotification(atMost: waitMax, or: wakeup)
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
            guard try Self.timeline(check, over: new, &prepared, waitMax: limits.resultMax) == timeline else {
                throw PostgresError(
                    sqlState: PostgresError.timelineChange,
                    message: "the database was restored while this process was running")
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

    private static func timeline(
        _ check: StaticString?, over handle: borrowing ConnectionHandle, _ prepared: inout [String: String],
        waitMax: Duration
    ) throws(PostgresError) -> String? {
        guard let check else { return nil }
        do throws(PostgresError) {
            let query = [Statement(stringLiteral: check.description)]
            return try exchange(query, over: handle, prepared: &prepared, waitMax: waitMax)[0][0].decode(String.self)
        } catch {
            if ["42883", "3F000"].contains(error.sqlState) { return nil }
            // Without the statement's text, which would hide the required action.
            throw PostgresError(sqlState: error.sqlState, message: error.message)
        }
    }

    /// Takes notifications from libpq, which otherwise keeps them.
    private mutating func noteNotifications() {
        if handle?.takeNotifications() == true { wasNotified = true }
    }

    private mutating func close() {
        handle = nil
        wasNotified = false
        openCount += 1
        prepared.removeAll()
    }

    /// Closes the connection if `body` failed because it was lost.
    private mutating func closingIfLost<Success>(
        _ body: (borrowing ConnectionHandle) throws(PostgresError) -> Success
    ) throws(PostgresError) -> Success {
        guard let open = handle.take() else { throw PostgresError(sqlState: nil, message: "the connection was lost") }
        do {
            let success = try body(open)
            handle = consume open
            return success
        } catch {
            if open.isOpen, !error.isConnectionLost { handle = consume open } else { close() }
            throw error
        }
    }

    // MARK: Exchange

    @discardableResult
    fileprivate mutating func exchange(_ statements: [Statement]) throws(PostgresError) -> [Rows] {
        var prepared = self.prepared
        let limit = limits.resultMax
        do {
            let results = try closingIfLost { handle throws(PostgresError) in
                try Self.exchange(statements, over: handle, prepared: &prepared, waitMax: limit)
            }
            self.prepared = prepared
            noteNotifications()
            return results
        } catch {
            // A prepared plan is invalid (0A000) or no longer exists (26000): prepare all statements again.
            if ["0A000", "26000", "42P05"].contains(error.sqlState) {
                close()
            } else if handle != nil {
                self.prepared = prepared
            }
            throw error
        }
    }

    private static func exchange(
        _ statements: [Statement], over handle: borrowing ConnectionHandle, prepared: inout [String: String],
        waitMax: Duration
    ) throws(PostgresError) -> [Rows] {
        let newNames = try send(statements, over: handle, prepared: prepared, waitMax: waitMax)
        return try receive(statements, newNames, over: handle, prepared: &prepared, waitMax: waitMax)
    }

    /// - Returns: The names of newly prepared statements by index.
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
        var results: [Rows] = []
        results.reserveCapacity(statements.count)
        var failure: PostgresError?
        for (index, statement) in statements.enumerated() {
            if let name = newNames[index] {
                switch try handle.receive(statement, waitMax: waitMax) {
                case .success: if !name.isEmpty { prepared[statement.text] = name }
                case .failure(let error): failure = failure ?? error
                }
            }
            switch try handle.receive(statement, waitMax: waitMax) {
            case .success(let rows): results.append(rows)
            case .failure(let error): failure = failure ?? error
            }
        }
        try handle.receiveSync(waitMax: waitMax)
        if let failure { throw failure }
        return results
    }

    // MARK: Overlapping

    /// Sends the statements as `run` does, and returns without waiting for the results, so that the caller can prepare
    /// its next work meanwhile. Any later statement waits for them; `finish()` returns the results.
    package mutating func start(_ statements: [Statement]) throws(PostgresError) {
        precondition(started == nil && finished == nil, "one transaction at a time")
        try open()
        let (prepared, limit) = (prepared, limits.resultMax)
        let newNames = try closingIfLost { handle throws(PostgresError) in
            try Self.send(statements, over: handle, prepared: prepared, waitMax: limit)
        }
        started = (statements, newNames)
    }

    /// Buffers the available results of started statements, without waiting, so that PostgreSQL can send more.
    package func bufferStarted() {
        if started != nil { handle?.bufferInput() }
    }

    /// Waits for the results of the started statements.
    @discardableResult
    package mutating func finish() throws(PostgresError) -> [Rows] {
        receiveStarted()
        return try finished.take()?.get() ?? []
    }

    /// Receives the results of the started statements, which `finish` returns.
    private mutating func receiveStarted() {
        guard started != nil else { return }
        finished = Result { () throws(PostgresError) in try resultsOfStarted() }
        noteNotifications()
    }

    private mutating func resultsOfStarted() throws(PostgresError) -> [Rows] {
        guard let (statements, newNames) = started.take() else { return [] }
        var prepared = self.prepared
        let limit = limits.resultMax
        defer { if handle != nil { self.prepared = prepared } }
        return try closingIfLost { handle throws(PostgresError) in
            try Self.receive(statements, newNames, over: handle, prepared: &prepared, waitMax: limit)
        }
    }
}

/// A transaction, lent to a closure: it cannot escape.
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
