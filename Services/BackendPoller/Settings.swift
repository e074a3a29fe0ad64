import ServiceRuntime
import ServiceSettings

/// Settings of `backend-poller` in addition to those of all services.
enum Settings {
    static let inFlightMax = Setting(
        "poller.inflight.max", .integer(1...256), default: "8",
        help: "maximum people of one environment polled concurrently, per worker")
    static let entryDays = Setting(
        "poller.entry.days", .integer(0...3_660), default: "60", help: "past days whose entries are polled")
    static let aheadDays = Setting(
        "poller.ahead.days", .integer(0...3_660), default: "31", help: "future days whose entries are polled")
    static let staleMax = Setting(
        "poller.overdue.max", .duration(.seconds(1) ... .seconds(86_400)), default: "30m",
        help: "age after which the next run restarts an unfinished poll; must be longer than a run takes")

    static let all = Setting.callingWorker + [inFlightMax, entryDays, aheadDays, staleMax]
}
