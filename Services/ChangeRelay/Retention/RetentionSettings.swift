import KeyedWorker
import ServiceSettings

/// How long `change-relay` lets stay what is in nobody's use.
enum RetentionSettings {
    /// From a day on: what is younger may be in use.
    private static let age = Setting.Kind.duration(.seconds(86_400) ... .seconds(3_650 * 86_400))

    static let interval = Setting(
        "retention.interval", .duration(.seconds(1) ... .seconds(7 * 86_400)), default: "6h",
        help: "how often what the settings below are about is looked through for what is older; pointers to polls "
            + "every minute")
    static let polls = Setting(
        "retention.polls", .duration(.seconds(1) ... .seconds(30 * 86_400)), default: "1h",
        help: "how long pointers to polls stay in the change log once they are published")
    static let answers = Setting(
        "retention.answers", age, default: "90d",
        help: "how long after a client's last new mutation the answers stay that a repeated one gets; then it is "
            + "told answer-forgotten")
    static let ledger = Setting(
        "retention.ledger", age, default: "90d",
        help: "how long ledger rows stay of entries that are recorded, or deleted with nothing in the back end")
    static let attempts = Setting(
        "retention.attempts", age, default: "90d",
        help: "how long it stays known what came of each attempt to submit an entry, for fieldpost trace")
    static let seen = Setting(
        "retention.seen", age, default: "400d",
        help: "how old the days may be that back ends' records are followed of; longer than poller.entry.days")
    static let statusLines = Setting(
        "retention.status.lines", .integer(1...10_000), default: "100",
        help: "lines of one entry's status log; the oldest beyond it are deleted")
    static let tokens = Setting(
        "retention.tokens", age, default: "400d",
        help: "how long refresh tokens stay; longer than the identity provider takes them. Revoked ones go at once")
    static let devices = Setting(
        "retention.devices", age, default: "90d",
        help:
            "how long a device may stay away before its person must log in again: after that its credential goes, and "
            + "the refresh token with it")
    static let audit = Setting(
        "retention.audit", age, default: "400d", help: "how long records of the audit log stay")
    static let images = Setting(
        "retention.images", age, default: "7d",
        help: "how long after it was sent an image stays that no object names; longer than devices are offline "
            + "between sending an image and naming it")
    static let parked = Setting(
        "retention.parked", age, default: "180d",
        help: "how long dead keys wait for a person; each that goes is a warning in the log")

    static let all = [
        interval, polls, answers, ledger, attempts, seen, statusLines, tokens, devices, audit, images, parked,
    ]
}

extension RetentionLimits {
    init(_ configuration: Configuration) throws(ConfigurationError) {
        self.init()
        interval = try configuration.duration(RetentionSettings.interval)
        polls = try configuration.duration(RetentionSettings.polls)
        answers = try configuration.duration(RetentionSettings.answers)
        ledger = try configuration.duration(RetentionSettings.ledger)
        attempts = try configuration.duration(RetentionSettings.attempts)
        seen = try configuration.duration(RetentionSettings.seen)
        statusLineCountMax = try configuration.integer(RetentionSettings.statusLines)
        tokens = try configuration.duration(RetentionSettings.tokens)
        devices = try configuration.duration(RetentionSettings.devices)
        audit = try configuration.duration(RetentionSettings.audit)
        images = try configuration.duration(RetentionSettings.images)
        parked = try configuration.duration(RetentionSettings.parked)
    }
}
