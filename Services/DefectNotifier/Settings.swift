import ServiceRuntime
import ServiceSettings

/// The settings of `defect-notifier`, in addition to those of all services.
enum Settings {
    static let comparisonInterval = Setting(
        "notifier.comparison.interval", .duration(.seconds(5) ... .seconds(604_800)), default: "1h",
        help: "interval of comparisons of all defects with people's mirrors")
    static let staleMax = Setting(
        "notifier.overdue.max", .duration(.seconds(1) ... .seconds(86_400)), default: "30m",
        help: "age after which the next run restarts a poll; must exceed a run's time")

    static let inFlightMax = Setting(
        "notifier.inflight.max", .integer(1...1_024), default: "16",
        help: "concurrent reads of one tracker with own logins, per worker")

    static let all = Setting.callingWorker + [comparisonInterval, staleMax, inFlightMax]
}
