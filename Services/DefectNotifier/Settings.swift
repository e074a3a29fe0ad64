import ServiceRuntime
import ServiceSettings

/// What `defect-notifier` can be told, beside what all services can.
enum Settings {
    static let comparisonInterval = Setting(
        "notifier.comparison.interval", .duration(.seconds(5) ... .seconds(604_800)), default: "1h",
        help: "how often all defects are read, and people's mirrors compared with them")
    static let staleMax = Setting(
        "notifier.overdue.max", .duration(.seconds(1) ... .seconds(86_400)), default: "30m",
        help: "a poll that is not done after so long is begun anew by the next run; must be longer than a run takes")

    static let inFlightMax = Setting(
        "notifier.inflight.max", .integer(1...1_024), default: "16",
        help: "people of one tracker who are read for at a time with their own logins, per worker")

    static let all = Setting.callingWorker + [comparisonInterval, staleMax, inFlightMax]
}
