import ServiceSettings

/// The settings of `realm-initializer`, in addition to the common ones.
enum Settings {
    static let inFlightMax = Setting(
        "initializer.inflight.max", .integer(1...256), default: "8",
        help: "concurrent initialisations per environment and worker")
    static let entryDays = Setting(
        "initializer.entry.days", .integer(0...3_660), default: "60",
        help: "past days whose existing time entries are fetched")

    static let all = Setting.callingWorker + [inFlightMax, entryDays]
}
