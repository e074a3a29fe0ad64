import Environments
import Runtime

/// What `realm-initializer` can be told, beside what all services can.
enum Settings {
    static let inFlightMax = Setting(
        "initializer.inflight.max", .integer(1...256), default: "8",
        help: "People of one environment initialised at a time, per worker")
    static let callMax = Setting(
        "backend.call.max", .duration(.milliseconds(100) ... .seconds(120)), default: "10s",
        help: "The longest a single HTTP call to a back end may take")
    static let entryDays = Setting(
        "initializer.entry.days", .integer(0...3_660), default: "60",
        help: "How many days back existing time entries are fetched")

    static let all: [Setting] = [
        .databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount, .secretKeys, inFlightMax, callMax, entryDays,
    ]
}
