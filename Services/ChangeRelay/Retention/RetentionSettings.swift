import Logging
import ServiceSettings

/// The retention settings of `change-relay`.
enum RetentionSettings {
    /// At least one day: younger data may be in use.
    private static let age = Setting.Kind.duration(.seconds(86_400) ... .seconds(3_650 * 86_400))

    static let interval = Setting(
        "retention.interval", .duration(.seconds(1) ... .seconds(7 * 86_400)), default: "6h",
        help: "interval between two runs of the retention sweeps below; pointers to polls are swept every minute")
    static let polls = Setting(
        "retention.polls", .duration(.seconds(1) ... .seconds(30 * 86_400)), default: "1h",
        help: "retention of published pointers to polls in the change log")
    static let results = Setting(
        "retention.answers", age, default: "90d",
        help: "retention of mutation results after a client's last new mutation; afterwards a repeated "
            + "mutation gets result-expired")
    static let ledger = Setting(
        "retention.ledger", age, default: "90d",
        help: "retention of ledger rows of entries that are recorded, or deleted without a back-end record")
    static let attempts = Setting(
        "retention.attempts", age, default: "90d",
        help: "retention of the results of attempts to submit entries, for fieldpost trace")
    static let seen = Setting(
        "retention.seen", age, default: "400d",
        help: "retention of the back ends' polled records after their day; longer than poller.entry.days")
    static let statusLines = Setting(
        "retention.status.lines", .integer(1...10_000), default: "100",
        help: "maximum number of lines of an entry's status log; older ones are deleted")
    static let tokens = Setting(
        "retention.tokens", age, default: "400d",
        help:
            "retention of refresh tokens; longer than the identity provider accepts them. Revoked ones are removed "
            + "at once"
    )
    static let devices = Setting(
        "retention.devices", age, default: "90d",
        help:
            "retention of the credential of an unused device: afterwards its person must log in again, and "
            + "the refresh token is removed too")
    static let audit = Setting("retention.audit", age, default: "400d", help: "retention of audit log records")
    static let images = Setting(
        "retention.images", age, default: "7d",
        help: "retention of images without a reference after their upload; longer than devices are offline "
            + "between sending an image and referring to it")
    static let parked = Setting(
        "retention.parked", age, default: "180d",
        help: "retention of dead-lettered keys without manual action; each removal is logged as a warning")

    static let all = [
        interval, polls, results, ledger, attempts, seen, statusLines, tokens, devices, audit, images, parked,
    ]

    /// Creates the sweeps. Each has its own progress, so a restart needs new ones.
    static func sweeps(_ configuration: Configuration, _ logger: Logger) throws(ConfigurationError) -> [any Sweep] {
        [
            PollPointerSweep(keep: try configuration.duration(polls)),
            MutationResultSweep(keep: try configuration.duration(results)),
            LedgerSweep(keep: try configuration.duration(ledger)),
            AttemptSweep(keep: try configuration.duration(attempts)),
            ObservationSweep(keep: try configuration.duration(seen)),
            StatusLineSweep(keepCountMax: try configuration.integer(statusLines)), HistorySweep(),
            TokenSweep(keep: try configuration.duration(tokens), unused: try configuration.duration(devices)),
            AuditSweep(keep: try configuration.duration(audit)), BlobSweep(keep: try configuration.duration(images)),
            ParkedSweep(keep: try configuration.duration(parked), logger: logger),
        ]
    }
}
