import Essentials
import HTTPServer
import HTTPTypes
import KeyedWorker
import ObjectStore
import Postgres
import ServiceRuntime
import Synchronization

/// The console's database pools. They open when the database becomes available, so that lag is displayed meanwhile.
final class ConsoleDatabase: Sendable {
    /// The expected duration of a query. Each kind has its own pool, so that long queries delay only each other.
    enum QueryKind {
        /// A few rows by an index.
        case short
        /// A scan: a timeline, the audit log, a realm's content.
        case long
    }

    /// The time after which a long query reads no further pages.
    static let queryMax = Duration.seconds(8)
    private static let poolSize = 2
    private static let jobCountMax = 100
    /// The limit of queued long queries.
    private static let longCountMax = 10

    private let conninfo: String
    private let pools = Mutex<[QueryKind: Pool]>([:])

    init(_ conninfo: String) { self.conninfo = conninfo }

    /// A component that opens the pools and retries while the database is unavailable. An incompatible schema ends the
    /// process.
    var component: Component {
        .loop("console-database") { control in
            try self.open()
            while !control.isStopping {
                control.progressed()
                control.pause(.seconds(1))
            }
        }
    }

    /// The first schema with kinds that environments declare, which the console displays.
    private static let schemaOldest: Int32 = 37

    var isOpen: Bool { pools.withLock { !$0.isEmpty } }

    func open() throws {
        guard !isOpen else { return }
        let short = try Pool(
            conninfo, size: Self.poolSize, jobCountMax: Self.jobCountMax, limits: .monitor, check: Lineage.check)
        do {
            var connection = try Connection(conninfo, limits: .monitor)
            try Schema.check(on: &connection, oldest: Self.schemaOldest)
            let long = try Pool(
                conninfo, size: Self.poolSize, jobCountMax: Self.longCountMax, limits: .monitor,
                check: Lineage.check)
            pools.withLock { $0 = [.short: short, .long: long] }
        } catch {
            short.stop()
            throw error
        }
    }

    /// Runs `body` on a pooled connection's thread.
    ///
    /// - Throws: `Problem` 503 if the database is unavailable, the queue is full, a timeout expires, or the environment
    ///   is write-blocked; `Problem` 409 if it has moved; otherwise the errors of `body`.
    func run<Success: Sendable>(
        _ kind: QueryKind = .short, _ body: @escaping @Sendable (inout Connection) throws -> Success
    ) async throws -> Success {
        guard let pool = pools.withLock({ $0[kind] }) else { throw Self.unavailable }
        do {
            return try await pool.run(body)
        } catch let error as PostgresError where error.isStatementTimeout {
            throw Problem(
                .serviceUnavailable,
                detail:
                    "The query exceeded its time limit of \(Limits.monitor.statementMax.shortText). Use the command "
                    + "line, which has no such limit.")
        } catch let error as PostgresError where error.sqlState == "53300" {
            throw Problem(
                .serviceUnavailable, detail: "Too many concurrent queries; retry later.", headers: [.retryAfter: "5"])
        } catch let error as PostgresError where error.sqlState == "23514" {
            throw Problem(
                .conflict,
                detail:
                    "The environment has moved to another installation; no audit record can be written here, so it "
                    + "cannot be displayed. Use the console of that installation.")
        } catch let error as PostgresError where error.isLocked {
            throw Problem(
                .serviceUnavailable,
                detail:
                    "The environment is write-blocked for its move to another installation, or locked by another "
                    + "transaction; retry later.", headers: [.retryAfter: "5"])
        } catch let error as PostgresError where error.isRetriable {
            throw Self.unavailable
        }
    }

    private static let unavailable = Problem(
        .serviceUnavailable, detail: "The database is unavailable.", headers: [.retryAfter: "2"])

    /// Closes the pools after their work in progress.
    func close() {
        for pool in pools.withLock(\.values) { pool.stop() }
    }
}
