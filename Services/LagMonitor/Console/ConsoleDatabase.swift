import Essentials
import HTTPServer
import HTTPTypes
import KeyedWorker
import ObjectStore
import Postgres
import ServiceRuntime
import Synchronization

/// The console's connections. They are opened when the database is there, so that lag is told while it is away.
final class ConsoleDatabase: Sendable {
    /// How long a look takes: those that take long hold up each other, and nobody else.
    enum Look {
        /// Rows that an index finds.
        case short
        /// Whatever reads much: a time line, the audit log, what a realm holds.
        case long
    }

    private struct Pools {
        let short: Pool
        let long: Pool

        subscript(look: Look) -> Pool {
            switch look {
            case .short: short
            case .long: long
            }
        }
    }

    /// One statement of a page ends before a person gives up.
    static let statementMax = Duration.seconds(5)
    /// After it a long look reads nothing more.
    static let lookMax = Duration.seconds(8)
    private static let poolSize = 2
    private static let jobCountMax = 100
    /// Long looks that wait for one of the connections.
    private static let longCountMax = 10

    private let conninfo: String
    private let pools = Mutex<Pools?>(nil)

    init(_ conninfo: String) { self.conninfo = conninfo }

    private static var limits: Limits {
        var limits = Limits(lockMax: .seconds(2))
        (limits.statementMax, limits.tcpUserMax) = (statementMax, .seconds(5))
        return limits
    }

    /// Opens the connections, and tries again for as long as the database is away. A schema that this program does not
    /// know ends the process.
    var component: Component {
        .worker(
            "console's database", restart: Backoff(first: .milliseconds(100), waitMax: .seconds(5)), isFinal: isFinal
        ) { control in
            try self.open()
            while !control.isStopping {
                control.progressed()
                control.pause(.seconds(1))
            }
        }
    }

    /// It shows where environments move.
    private static let schemaOldest: Int32 = 28

    var isOpen: Bool { pools.withLock { $0 != nil } }

    func open() throws {
        guard !isOpen else { return }
        let short = try Pool(
            conninfo, size: Self.poolSize, jobCountMax: Self.jobCountMax, limits: Self.limits, check: Lineage.check)
        do {
            var connection = try Connection(conninfo, limits: Self.limits)
            try Schema.check(on: &connection, oldest: Self.schemaOldest)
            let long = try Pool(
                conninfo, size: Self.poolSize, jobCountMax: Self.longCountMax, limits: Self.limits,
                check: Lineage.check)
            pools.withLock { $0 = Pools(short: short, long: long) }
        } catch {
            short.stop()
            throw error
        }
    }

    /// Runs `body` on a connection's thread.
    ///
    /// - Throws: `Problem` 503 while the database is away, or too many look at a time, or it takes too long, or the
    ///   environment is held; `Problem` 409 when that has moved; what else `body` throws.
    func run<Success: Sendable>(
        _ look: Look = .short, _ body: @escaping @Sendable (inout Connection) throws -> Success
    ) async throws -> Success {
        guard let pool = pools.withLock({ $0?[look] }) else { throw Self.away }
        do {
            return try await pool.run(body)
        } catch let error as PostgresError where error.isOutOfTime {
            throw Problem(
                .serviceUnavailable,
                detail: "It took longer than \(Self.statementMax.shortText), and was given up. The command line takes "
                    + "the time that it needs.")
        } catch let error as PostgresError where error.sqlState == "53300" {
            throw Problem(
                .serviceUnavailable, detail: "Too many look at a time; try again.", headers: [.retryAfter: "5"])
        } catch let error as PostgresError where error.sqlState == "23514" {
            throw Problem(
                .conflict,
                detail: "The environment has moved to another installation, and nothing can be recorded of it here any "
                    + "more: look at it there.")
        } catch let error as PostgresError where error.isLocked {
            throw Problem(
                .serviceUnavailable,
                detail: "The environment is being moved to another installation, or somebody holds what this needs: "
                    + "try again.", headers: [.retryAfter: "5"])
        } catch let error as PostgresError where error.isRetriable {
            throw Self.away
        }
    }

    private static let away = Problem(
        .serviceUnavailable, detail: "The database does not answer at the moment.", headers: [.retryAfter: "2"])

    /// Ends the connections once their work is done.
    func close() {
        pools.withLock {
            $0?.short.stop()
            $0?.long.stop()
        }
    }
}
