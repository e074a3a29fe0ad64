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
    private let limits: RetentionLimits
    private let logger: Logger

    init(conninfo: String, limits: RetentionLimits, logger: Logger) throws {
        var connection = try Connection(conninfo, check: Lineage.check)
        try Schema.check(on: &connection)
        self.connection = connection
        self.limits = limits
        self.logger = logger
        sweeps = Self.makeSweeps(limits, logger).map { sweep in
            ScheduledSweep(
                sweep: sweep, interval: min(sweep.intervalMax, limits.interval),
                removed: Counter(
                    label: "fieldpost.retention.removed", dimensions: [("what", sweep.name)]))
        }
    }

    private static func makeSweeps(_ limits: RetentionLimits, _ logger: Logger) -> [any Sweep] {
        [
            PollPointerSweep(keep: limits.polls), MutationResultSweep(keep: limits.results),
            LedgerSweep(keep: limits.ledger), AttemptSweep(keep: limits.attempts), ObservationSweep(keep: limits.seen),
            StatusLineSweep(keepCountMax: limits.statusLineCountMax),
            TokenSweep(keep: limits.tokens, unused: limits.devices),
            AuditSweep(keep: limits.audit), BlobSweep(keep: limits.images),
            ParkedSweep(keep: limits.parked, logger: logger),
        ]
    }

    /// Performs one step of each sweep that is due.
    ///
    /// - Returns: The time until a step is due. The interval between two runs of a sweep is `RetentionLimits.interval`
    ///   or less.
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

/// Retention times, each for a separate reason; see the settings of `change-relay`.
struct RetentionLimits: Sendable {
    /// The interval between two runs.
    var interval = Duration.seconds(6 * 3_600)
    /// Pointers to polls, since their publication.
    var polls = Duration.seconds(3_600)
    /// Results of mutations, since the client's last new mutation.
    var results = Duration.seconds(90 * 86_400)
    /// Ledger rows of closed or deleted entries, since their last write.
    var ledger = Duration.seconds(90 * 86_400)
    /// Attempts to submit entries.
    var attempts = Duration.seconds(90 * 86_400)
    /// Polled records, since their day.
    var seen = Duration.seconds(400 * 86_400)
    /// Maximum number of lines of one entry's status log.
    var statusLineCountMax = 100
    var tokens = Duration.seconds(400 * 86_400)
    /// Credentials of devices, since their last use.
    var devices = Duration.seconds(90 * 86_400)
    var audit = Duration.seconds(400 * 86_400)
    /// Images without a reference, since their last upload.
    var images = Duration.seconds(7 * 86_400)
    /// Dead-lettered keys, since they were last deferred.
    var parked = Duration.seconds(180 * 86_400)

    init() {}
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
