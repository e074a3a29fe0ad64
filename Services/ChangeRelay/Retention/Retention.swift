import Logging
import Metrics
import ObjectStore
import Postgres

/// Removes old data that is not used any more, so that only users' own data grows without a limit.
///
/// Each sweep processes one table in small steps and skips locked rows: nothing waits for it, and several processes can
/// run it concurrently. Objects visible to devices are removed with a tombstone.
struct Retention: ~Copyable {
    /// The pause between two steps, which leaves capacity for other work.
    private static let pause = Duration.milliseconds(50)
    /// Maximum time between two checks for due sweeps.
    private static let waitMax = Duration.seconds(5)

    /// A sweep with the time of its next step.
    private struct ScheduledSweep {
        var sweep: any Sweep
        let interval: Duration
        let removed: Counter
        var removedCount = 0
        var next = ContinuousClock.now
    }

    private var connection: Connection
    private var sweeps: [ScheduledSweep]
    private var nextCount = ContinuousClock.now
    private let logger: Logger

    /// - Parameter interval: The interval between two runs of a sweep, which may have a shorter one of its own.
    init(conninfo: String, sweeps: [any Sweep], interval: Duration, logger: Logger) throws {
        var connection = try Connection(conninfo, check: Lineage.check)
        try Schema.check(on: &connection)
        self.connection = connection
        self.logger = logger
        self.sweeps = sweeps.map { sweep in
            ScheduledSweep(
                sweep: sweep, interval: min(sweep.intervalMax, interval),
                removed: Counter(label: "fieldpost.retention.removed", dimensions: [("what", sweep.name)]))
        }
    }

    /// Performs one step of each sweep that is due.
    ///
    /// - Returns: The time until a step is due.
    mutating func step() throws -> Duration {
        try countRows()
        var next = ContinuousClock.now + Self.waitMax
        for index in sweeps.indices {
            if ContinuousClock.now >= sweeps[index].next { try step(index) }
            next = min(next, sweeps[index].next)
        }
        return max(Self.pause, next - .now)
    }

    private mutating func step(_ index: Int) throws {
        let part = try sweeps[index].sweep.step(on: &connection)
        sweeps[index].removed.increment(by: part.removedCount)
        sweeps[index].removedCount += part.removedCount
        guard part.isLast else { return sweeps[index].next = .now + Self.pause }
        if sweeps[index].removedCount > 0 {
            logger.info(
                "old rows removed",
                metadata: [
                    "what": "\(sweeps[index].sweep.name)", "count": "\(sweeps[index].removedCount)",
                ])
        }
        sweeps[index].removedCount = 0
        sweeps[index].next = .now + sweeps[index].interval
    }

    /// Reports the approximate numbers of rows from PostgreSQL's last ANALYZE or VACUUM: counting would read all
    /// tables.
    private mutating func countRows() throws {
        guard ContinuousClock.now >= nextCount else { return }
        nextCount = .now + .seconds(60)
        let rows = try connection.run(
            """
            SELECT n.nspname || '.' || c.relname, c.reltuples::float8
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind = 'r' AND c.reltuples >= 0 AND n.nspname || '.' || c.relname = ANY (\(Self.tables))
            """)
        for (table, count) in try rows.decode(String.self, Double.self) {
            Gauge(label: "fieldpost.retention.rows", dimensions: [("table", table)]).record(count)
        }
    }

    private static let tables = [
        "store.object", "store.change", "device.client", "device.mutation", "submission.ledger", "submission.attempt",
        "pipeline.parked", "onboarding.refresh_token", "access.audit", "blob.content",
    ]
}

/// A sweep that processes a table in small steps, run by run.
protocol Sweep: Sendable {
    /// The name of the removed data for the log and the metric.
    var name: String { get }
    /// Maximum interval between two runs, for data that grows too fast for the configured interval.
    var intervalMax: Duration { get }

    /// Performs the next step.
    mutating func step(on connection: inout Connection) throws -> SweepResult
}

extension Sweep {
    var intervalMax: Duration { .seconds(7 * 86_400) }
}

/// The result of a step.
struct SweepResult {
    let removedCount: Int
    /// Whether the run is complete.
    let isLast: Bool
}
