import CPostgres
import Essentials
import Glibc

/// Owns one `PGconn` in non-blocking mode.
///
/// It cannot be copied, so it is closed once and used by one thread at a time; the compiler checks both.
@safe struct ConnectionHandle: ~Copyable {
    private let pointer: OpaquePointer

    /// Connects and waits for it, at most `limits.connectMax`, or the `connect_timeout` of `conninfo`.
    init(conninfo: String, limits: Limits) throws(PostgresError) {
        try Self.check(conninfo)
        let settings = [
            // What comes later counts: a connection string may say another time.
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

    /// A text that libpq cannot read: its own message would quote a part of it, which may be of the password.
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
                message: "the connection string cannot be read: key=value pairs or a postgresql:// URI is allowed, "
                    + "special characters of a URI's parts as %xx")
        }
    }

    var serverVersion: Int32 { unsafe PQserverVersion(pointer) }
    var isOpen: Bool { unsafe PQstatus(pointer) == CONNECTION_OK }
    var hasFailedTransaction: Bool { unsafe PQtransactionStatus(pointer) == PQTRANS_INERROR }

    var lastMessage: String { unsafe String(cString: PQerrorMessage(pointer)) }

    /// Sets the session's time-outs, without which a forgotten transaction holds up its whole environment, and a
    /// session whose host is gone keeps its locks for hours (`tcp_*` do nothing on a Unix socket, where no host can
    /// go). Keeps the planner to indexes: every statement reads by a key, in its order. While statistics are missing or
    /// the plan is a generic one, PostgreSQL preferred to read and sort the whole change log for each page of it (seen
    /// with PostgreSQL 15; what is off is still used where nothing else is possible).
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
        try simple(text, waitMax: limits.answerMax)
    }

    /// Runs text without parameters, several statements if need be, as one transaction.
    func simple(_ text: String, waitMax: Duration) throws(PostgresError) {
        guard unsafe PQsendQuery(pointer, text) == 1 else { throw lost() }
        try receiveEnd(of: text, waitMax: waitMax)
    }

    /// Reads what is left of the answers to `text`.
    ///
    /// - Throws: The first failure among them.
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

    /// Marks the end of the pipeline and sends what is left, reading meanwhile: a server that cannot send stops
    /// receiving.
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

    /// Reads the answer to one message of the pipeline, with the null that ends it.
    func receive(_ statement: Statement, waitMax: Duration) throws(PostgresError) -> Result<Rows, PostgresError> {
        guard let result = unsafe try nextResult(waitMax: waitMax) else {
            throw PostgresError(sqlState: nil, message: "the server's answers ended early")
        }
        let answer: Result<Rows, PostgresError>
        switch unsafe PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK: answer = .success(unsafe Rows(taking: result))
        case PGRES_PIPELINE_ABORTED:
            unsafe PQclear(result)
            answer = .failure(PostgresError(sqlState: "25P02", message: "not run: an earlier statement failed"))
        default:
            answer = .failure(unsafe Self.error(of: result, statement: statement.text))
            unsafe PQclear(result)
        }
        while let extra = unsafe try nextResult(waitMax: waitMax) { unsafe PQclear(extra) }
        return answer
    }

    /// Reads the mark that the server has finished the pipeline: what it did is committed, or undone.
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

    /// Sends `COPY … TO STDOUT` and lends each chunk the server sends to `body`.
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
        // How it ended comes last: an error may follow any number of chunks.
        try receiveEnd(of: text, waitMax: waitMax)
    }

    // MARK: Waiting

    /// Reads and parses what the socket has. A failure shows again when the result is asked for.
    func takeIn() {
        if unsafe PQconsumeInput(pointer) == 1 { _ = unsafe PQisBusy(pointer) }
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
        guard rest > 0 else { throw PostgresError(sqlState: nil, message: "no answer from the server in time") }
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

/// Lends the texts as the null-terminated array of C strings that libpq asks for.
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

/// Lends each parameter's bytes in place. Nesting one closure per parameter keeps every array alive for the call.
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
