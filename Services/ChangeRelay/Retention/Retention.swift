import Logging
import Metrics
import ObjectStore
import Postgres

/// Removes what is old and in nobody's use, so that nothing but people's own data grows without end.
///
/// Each sweep goes over one table, a small part at a time, and passes over rows that are locked: nobody waits for it,
/// and several processes may do it at a time. What devices see is removed as everything else is, with a tombstone.
struct Retention: ~Copyable {
    /// Between two parts there is time for others.
    private static let pause = Duration.milliseconds(50)
    /// Between two looks at whether something is due.
    private static let waitMax = Duration.seconds(5)

    /// A sweep, and when its next part is due.
    private struct Course {
        var sweep: any Sweep
        let interval: Duration
        let removed: Counter
        var removedCount = 0
        var next = ContinuousClock.now
    }

    private var connection: Connection
    private var courses: [Course]
    private var nextCount = ContinuousClock.now
    private let limits: RetentionLimits
    private let logger: Logger

    init(conninfo: String, limits: RetentionLimits, logger: Logger) throws {
        var connection = try Connection(conninfo, check: Lineage.check)
        try Schema.check(on: &connection)
        self.connection = connection
        self.limits = limits
        self.logger = logger
        courses = Self.sweeps(limits, logger).map { sweep in
            Course(
                sweep: sweep, interval: min(sweep.intervalMax, limits.interval),
                removed: Counter(
                    label: "fieldpost.retention.removed", dimensions: [("what", sweep.name)]))
        }
    }

    private static func sweeps(_ limits: RetentionLimits, _ logger: Logger) -> [any Sweep] {
        [
            PollPointerSweep(keep: limits.polls), AnswerSweep(keep: limits.answers),
            LedgerSweep(keep: limits.ledger), AttemptSweep(keep: limits.attempts), ObservationSweep(keep: limits.seen),
            StatusLineSweep(keepCountMax: limits.statusLineCountMax),
            TokenSweep(keep: limits.tokens, unused: limits.devices),
            AuditSweep(keep: limits.audit), BlobSweep(keep: limits.images),
            ParkedSweep(keep: limits.parked, logger: logger),
        ]
    }

    /// One part of each sweep that is due.
    ///
    /// - Returns: How long nothing is due. Between two rounds of a sweep it is `RetentionLimits.interval`, or less.
    mutating func step() throws -> Duration {
        try countRows()
        var next = ContinuousClock.now + Self.waitMax
        for index in courses.indices {
            if ContinuousClock.now >= courses[index].next { try step(index) }
            next = min(next, courses[index].next)
        }
        return max(Self.pause, next - .now)
    }

    private mutating func step(_ index: Int) throws {
        let part = try courses[index].sweep.step(on: &connection)
        courses[index].removed.increment(by: part.removedCount)
        courses[index].removedCount += part.removedCount
        guard part.isLast else { return courses[index].next = .now + Self.pause }
        if courses[index].removedCount > 0 {
            logger.info(
                "what was old is removed",
                metadata: [
                    "what": "\(courses[index].sweep.name)", "count": "\(courses[index].removedCount)",
                ])
        }
        courses[index].removedCount = 0
        courses[index].next = .now + courses[index].interval
    }

    /// About how many rows there are, as PostgreSQL's last ANALYZE or VACUUM found: counting them would cost a reading
    /// of all.
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

/// How long what is kept, each for a reason of its own; see the settings of `change-relay`.
struct RetentionLimits: Sendable {
    /// Between two rounds.
    var interval = Duration.seconds(6 * 3_600)
    /// Pointers to polls, from their publishing on.
    var polls = Duration.seconds(3_600)
    /// Answers to mutations, from a client's last new one on.
    var answers = Duration.seconds(90 * 86_400)
    /// Ledger rows of entries that are closed or gone, from their last write on.
    var ledger = Duration.seconds(90 * 86_400)
    /// What came of attempts to submit entries.
    var attempts = Duration.seconds(90 * 86_400)
    /// Seen records, from the day on that they are of.
    var seen = Duration.seconds(400 * 86_400)
    /// Lines of one entry's status log.
    var statusLineCountMax = 100
    var tokens = Duration.seconds(400 * 86_400)
    /// Credentials of devices, from their last use on.
    var devices = Duration.seconds(90 * 86_400)
    var audit = Duration.seconds(400 * 86_400)
    /// Images that nothing names, from their last sending on.
    var images = Duration.seconds(7 * 86_400)
    /// Dead keys, from their last parking on.
    var parked = Duration.seconds(180 * 86_400)

    init() {}
}

/// Goes over a table round by round, a part at a time.
protocol Sweep: Sendable {
    /// What is removed, for the log and the metric.
    var name: String { get }
    /// The longest time between two rounds, where so much comes that the setting's would be too long.
    var intervalMax: Duration { get }

    /// Looks at the next part.
    mutating func step(on connection: inout Connection) throws -> SweptPart
}

extension Sweep {
    var intervalMax: Duration { .seconds(7 * 86_400) }
}

/// What came of a part of a sweep.
struct SweptPart {
    let removedCount: Int
    /// Whether the round is over.
    let isLast: Bool
}
