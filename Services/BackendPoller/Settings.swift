import Environments
import Runtime

/// What `backend-poller` can be told, beside what all services can.
enum Settings {
    static let inFlightMax = Setting(
        "poller.inflight.max", .integer(1...256), default: "8",
        help: "People of one environment polled at a time, per worker")
    static let callMax = Setting(
        "backend.call.max", .duration(.milliseconds(100) ... .seconds(120)), default: "10s",
        help: "The longest a single HTTP call to a back end may take")
    static let entryDays = Setting(
        "poller.entry.days", .integer(0...3_660), default: "60", help: "How many days back entries are followed")
    static let aheadDays = Setting(
        "poller.ahead.days", .integer(0...3_660), default: "31", help: "How many days ahead entries are followed")
    static let overdueMax = Setting(
        "poller.overdue.max", .duration(.seconds(1) ... .seconds(86_400)), default: "30m",
        help: "A person's poll that is not done after so long is begun anew by the next run")

    static let all: [Setting] = [
        .databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount, .secretKeys, inFlightMax, callMax, entryDays,
        aheadDays, overdueMax,
    ]
}
