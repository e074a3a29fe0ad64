import ServiceSettings

/// What `realm-initializer` can be told, beside what all services can.
enum Settings {
    static let inFlightMax = Setting(
        "initializer.inflight.max", .integer(1...256), default: "8",
        help: "people of one environment initialised at a time, per worker")
    static let entryDays = Setting(
        "initializer.entry.days", .integer(0...3_660), default: "60",
        help: "how many days back existing time entries are fetched")

    static let all = Setting.callingWorker + [inFlightMax, entryDays]
}
