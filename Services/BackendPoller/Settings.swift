import ServiceRuntime
import ServiceSettings

/// What `backend-poller` can be told, beside what all services can.
enum Settings {
    static let inFlightMax = Setting(
        "poller.inflight.max", .integer(1...256), default: "8",
        help: "people of one environment polled at a time, per worker")
    static let entryDays = Setting(
        "poller.entry.days", .integer(0...3_660), default: "60", help: "how many days back entries are followed")
    static let aheadDays = Setting(
        "poller.ahead.days", .integer(0...3_660), default: "31", help: "how many days ahead entries are followed")
    static let staleMax = Setting(
        "poller.overdue.max", .duration(.seconds(1) ... .seconds(86_400)), default: "30m",
        help: "a poll that is not done after so long is begun anew by the next run; must be longer than a run takes")

    static let all = Setting.callingWorker + [inFlightMax, entryDays, aheadDays, staleMax]
}
