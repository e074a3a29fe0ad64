import CPostgres
import Essentials
import Glibc

/// Owns one `PGconn` in non-blocking mode.
///
/// A noncopyable type, so that the compiler ensures a single close and use by one thread at a time.
@safe struct ConnectionHandle: ~Copyable {
    private let pointer: OpaquePointer

    /// Connects, with a timeout of `limits.connectMax` or the `connect_timeout` of `conninfo`.
    init(conninfo: String, limits: Limits) throws(PostgresError) {
        try Self.check(conninfo)
        let settings = [
            // Later settings take precedence: a connection string may contain another timeout.
            ("connect_timeout", String(max(2, limits.connectMax.components.seconds))), ("dbname", conninfo),
            ("tcp_user_timeout", String(limits.tcpUserMax.milliseconds)),
            ("keepalives_idle", "30"), ("client_encoding", "UTF8"), ("fallback_application_name", "fieldpost"),
        ]
        let opened = unsafe withCStrings(settings.map(\.0)) { names in
            unsafe withCStrings(settings.map(\.1)) { values in unsafe PQconnectdbParams(names, values, 1) }
        }
        guard let opened = unsafe opened else { throw PostgresError(sqlState: nil, message: "out of memory") }
        guard unsafe PQstatus(opened) == CONNECTION_OK else {
            let message = unsafe String(cString: PQerrorMessage(opened))
            unsafe PQfinish(opened)
            throw PostgresError(sqlState: nil, message: message)
        }
        unsafe PQsetnonblocking(opened, 1)
        unsafe PQsetNoticeProcessor(opened, { _, _ in }, nil)
        unsafe pointer = opened
    }

    deinit { unsafe PQfinish(pointer) }

    /// Validates a connection string: libpq's error message would quote a part of it, possibly of the password.
    private static func check(_ conninfo: String) throws(PostgresError) {
        let isName = !conninfo.contains("=") && !conninfo.contains("://")
        if isName { return }
        var message: UnsafeMutablePointer<CChar>?
        let options = unsafe PQconninfoParse(conninfo, &message)
        if let message = unsafe message { unsafe PQfreemem(message) }
        defer { unsafe PQconninfoFree(options) }
        var isReadable = unsafe options != nil
        var next = unsafe options
        while let option = unsafe next, let keyword = unsafe option.pointee.keyword {
            if unsafe String(cString: keyword) == "port", let value = unsafe option.pointee.val {
                let port = unsafe String(cString: value)
                isReadable = isReadable && port.allSatisfy { "0123456789,".contains($0) }
            }
            unsafe next = option + 1
        }
        guard isReadable else {
            throw PostgresError(
                sqlState: nil,
                message: "the connection string is invalid: key=value pairs or a postgresql:// URI is allowed, "
                    + "special characters of a URI's parts as %xx")
        }
    }

    var isOpen: Bool { unsafe PQstatus(pointer) == CONNECTION_OK }
    var hasFailedTransaction: Bool { unsafe PQtransactionStatus(pointer) == PQTRANS_INERROR }

    var lastMessage: String { unsafe String(cString: PQerrorMessage(pointer)) }

    /// Sets the session's timeouts. Without them an abandoned transaction would block its whole environment, and a
    /// session of an unreachable host would keep its locks for hours (`tcp_*` have no effect on a Unix socket, where
    /// the host cannot fail).
    ///
    /// Makes the planner prefer indexes: all statements read by a key, in its order. With missing statistics or a
    /// generic plan, PostgreSQL 15 read and sorted the whole change log for each page of it. Disabled plans are still
    /// used if no other plan is possible.
    func apply(_ limits: Limits) throws(PostgresError) {
        let text = """
            SET statement_timeout = \(limits.statementMax.milliseconds);
            SET lock_timeout = \(limits.lockMax.milliseconds);
            SET idle_in_transaction_session_timeout = \(limits.idleInTransactionMax.milliseconds);
            SET idle_session_timeout = \(limits.idleMax?.milliseconds ?? 0);
            SET tcp_user_timeout = \(limits.tcpUserMax.milliseconds);
            SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
            SET client_connection_check_interval = '5s';
            SET timezone = 'UTC';
            SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off
            """
        try simple(text, waitMax: limits.resultMax)
    }

    /// Runs one or more statements without parameters as one transaction.
    func simple(_ text: String, waitMax: Duration) throws(PostgresError) {
        guard unsafe PQsendQuery(pointer, text) == 1 else { throw lost() }
        try receiveEnd(of: text, waitMax: waitMax)
    }

    /// Receives the remaining results of `text`.
    ///
    /// - Throws: The first failure.
    private func receiveEnd(of text: String, waitMax: Duration) throws(PostgresError) {
        var failure: PostgresError?
        while let result = unsafe try nextResult(waitMax: waitMax) {
            switch unsafe PQresultStatus(result) {
            case PGRES_COMMAND_OK, PGRES_TUPLES_OK: break
            default: if failure == nil { failure = unsafe Self.error(of: result, statement: text) }
            }
            unsafe PQclear(result)
        }
        if let failure { throw failure }
    }

    // MARK: Pipeline

    func enterPipeline() throws(PostgresError) {
        guard unsafe PQenterPipelineMode(pointer) == 1 else { throw lost() }
    }

    func sendPrepare(_ name: String, _ statement: Statement) throws(PostgresError) {
        let types = statement.parameters.map(\.typeID)
        guard unsafe PQsendPrepare(pointer, name, statement.text, Int32(types.count), types) == 1 else { throw lost() }
    }

    func sendExecute(_ name: String, _ statement: Statement) throws(PostgresError) {
        let count = statement.parameters.count
        let lengths = statement.parameters.map { Int32($0.bytes?.count ?? 0) }
        let formats = [Int32](repeating: 1, count: count)
        let sent = unsafe withPointers(statement.parameters) { values in
            unsafe PQsendQueryPrepared(pointer, name, Int32(count), values, lengths, formats, 1)
        }
        guard sent == 1 else { throw lost() }
    }

    /// Ends the pipeline and flushes it while reading: a server that cannot send stops receiving.
    func sync(waitMax: Duration) throws(PostgresError) {
        guard unsafe PQpipelineSync(pointer) == 1 else { throw lost() }
        let deadline = ContinuousClock.now + waitMax
        while true {
            switch unsafe PQflush(pointer) {
            case 0: return
            case 1: try wait(forWriting: true, until: deadline)
            default: throw lost()
            }
            guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
        }
    }

    /// Receives the result of one message of the pipeline, including the null that terminates it.
    func receive(_ statement: Statement, waitMax: Duration) throws(PostgresError) -> Result<Rows, PostgresError> {
        guard let result = unsafe try nextResult(waitMax: waitMax) else {
            throw PostgresError(sqlState: nil, message: "the server's results ended early")
        }
        let outcome: Result<Rows, PostgresError>
        switch unsafe PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK: outcome = .success(unsafe Rows(taking: result))
        case PGRES_PIPELINE_ABORTED:
            unsafe PQclear(result)
            outcome = .failure(PostgresError(sqlState: "25P02", message: "not run: an earlier statement failed"))
        default:
            outcome = .failure(unsafe Self.error(of: result, statement: statement.text))
            unsafe PQclear(result)
        }
        while let extra = unsafe try nextResult(waitMax: waitMax) { unsafe PQclear(extra) }
        return outcome
    }

    /// Receives the end of the pipeline: its statements are then committed or rolled back.
    func receiveSync(waitMax: Duration) throws(PostgresError) {
        var failure: PostgresError?
        while true {
            guard let result = unsafe try nextResult(waitMax: waitMax) else { continue }
            let status = unsafe PQresultStatus(result)
            if status != PGRES_PIPELINE_SYNC { failure = unsafe Self.error(of: result, statement: "COMMIT") }
            unsafe PQclear(result)
            if status == PGRES_PIPELINE_SYNC { break }
        }
        guard unsafe PQexitPipelineMode(pointer) == 1 else { throw lost() }
        if let failure { throw failure }
    }

    // MARK: COPY

    /// Sends `COPY … TO STDOUT` and passes each received chunk to `body`.
    func copyOut(_ text: String, waitMax: Duration, _ body: (UnsafeRawBufferPointer) -> Void) throws(PostgresError) {
        guard unsafe PQsendQuery(pointer, text) == 1 else { throw lost() }
        guard let first = unsafe try nextResult(waitMax: waitMax) else { throw lost() }
        let status = unsafe PQresultStatus(first)
        let failure = unsafe Self.error(of: first, statement: text)
        unsafe PQclear(first)
        guard status == PGRES_COPY_OUT else { throw failure }
        let deadline = ContinuousClock.now + waitMax
        while true {
            var buffer: UnsafeMutablePointer<CChar>?
            let length = unsafe PQgetCopyData(pointer, &buffer, 1)
            if length > 0, let buffer = unsafe buffer {
                unsafe body(UnsafeRawBufferPointer(start: buffer, count: Int(length)))
                unsafe PQfreemem(buffer)
            } else if length == 0 {
                try wait(forWriting: false, until: deadline)
                guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
            } else {
                break
            }
        }
        // The final status follows: an error may come after any number of chunks.
        try receiveEnd(of: text, waitMax: waitMax)
    }

    // MARK: Waiting

    /// Reads and parses available input. A failure is reported when the result is received.
    func bufferInput() {
        if unsafe PQconsumeInput(pointer) == 1 { _ = unsafe PQisBusy(pointer) }
    }

    /// See `Connection.waitForNotification`.
    func waitForNotification(atMost waitMax: Duration, or wakeup: Wakeup) throws(PostgresError) -> Bool {
        if takeNotifications() { return true }
        wakeup.wait(atMost: waitMax, orReadable: unsafe PQsocket(pointer))
        guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
        return takeNotifications()
    }

    /// - Returns: Whether there was one.
    func takeNotifications() -> Bool {
        var isAny = false
        while let notification = unsafe PQnotifies(pointer) {
            unsafe PQfreemem(notification)
            isAny = true
        }
        return isAny
    }

    private func nextResult(waitMax: Duration) throws(PostgresError) -> OpaquePointer? {
        if unsafe PQisBusy(pointer) == 0 { return unsafe PQgetResult(pointer) }
        let deadline = ContinuousClock.now + waitMax
        while unsafe PQisBusy(pointer) == 1 {
            try wait(forWriting: false, until: deadline)
            guard unsafe PQconsumeInput(pointer) == 1 else { throw lost() }
        }
        return unsafe PQgetResult(pointer)
    }

    private func wait(forWriting: Bool, until deadline: ContinuousClock.Instant) throws(PostgresError) {
        let rest = (deadline - ContinuousClock.now).milliseconds
        guard rest > 0 else { throw PostgresError(sqlState: nil, message: "timed out waiting for the server") }
        let events = Int16(POLLIN) | (forWriting ? Int16(POLLOUT) : 0)
        var descriptor = pollfd(fd: unsafe PQsocket(pointer), events: events, revents: 0)
        let ready = unsafe poll(&descriptor, 1, Int32(min(rest, 1_000)))
        if ready < 0, errno != EINTR { throw lost() }
    }

    private func lost() -> PostgresError { PostgresError(sqlState: nil, message: lastMessage) }

    private static func error(of result: OpaquePointer, statement: String) -> PostgresError {
        func field(_ code: Character) -> String? {
            guard let ascii = code.asciiValue, let text = unsafe PQresultErrorField(result, Int32(ascii)) else {
                return nil
            }
            return unsafe String(cString: text)
        }
        let message = unsafe String(cString: PQresultErrorMessage(result))
        return PostgresError(
            sqlState: field("C"), message: field("M") ?? message,
            detail: field("D"), statement: statement)
    }
}

/// Converts the texts to the null-terminated array of C strings that libpq requires.
private func withCStrings<Success>(
    _ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Success
) -> Success {
    var copies: [UnsafePointer<CChar>?] = unsafe texts.map { unsafe UnsafePointer(strdup($0)) }
    unsafe copies.append(nil)
    defer { unsafe copies.forEach { unsafe free(UnsafeMutablePointer(mutating: $0)) } }
    return unsafe copies.withUnsafeBufferPointer { buffer in
        guard let base = buffer.baseAddress else { preconditionFailure("the list ends with nil, so it is not empty") }
        return unsafe body(base)
    }
}

/// Lends the parameters' bytes without copying. One nested closure per parameter keeps all arrays alive during the
/// call.
private func withPointers<Success>(
    _ parameters: [Statement.Parameter], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Success
) -> Success {
    var pointers: [UnsafePointer<CChar>?] = unsafe []
    unsafe pointers.reserveCapacity(parameters.count)
    func lend(_ index: Int) -> Success {
        guard index < parameters.count else {
            return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
        }
        guard let bytes = parameters[index].bytes else {
            unsafe pointers.append(nil)
            return lend(index + 1)
        }
        if bytes.isEmpty {
            return unsafe withUnsafeBytes(of: UInt8(0)) { zero in
                unsafe pointers.append(zero.baseAddress?.assumingMemoryBound(to: CChar.self))
                return lend(index + 1)
            }
        }
        return unsafe bytes.withUnsafeBytes { raw in
            unsafe pointers.append(raw.baseAddress?.assumingMemoryBound(to: CChar.self))
            return lend(index + 1)
        }
    }
    return lend(0)
}
