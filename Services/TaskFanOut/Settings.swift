import ServiceSettings

/// The settings of `task-fan-out`, in addition to those of all services.
enum Settings {
    private static let age = Setting.Kind.duration(.seconds(1) ... .seconds(3_650 * 86_400))

    static let completedKeep = Setting(
        "task.completed.keep", age, default: "30d",
        help: "retention of a completed task's copy with its team or person")
    static let archiveAfter = Setting(
        "task.archive.after", age, default: "400d",
        help: "time until a completed task is archived; at least task.completed.keep")
    static let sweepInterval = Setting(
        "task.sweep.interval", .duration(.seconds(1) ... .seconds(86_400)), default: "1h",
        help: "interval of the search for tasks past these limits")

    static let all = Setting.worker + [completedKeep, archiveAfter, sweepInterval]
}

extension TaskRetention {
    init(_ configuration: Configuration) throws(ConfigurationError) {
        self.init()
        copies = try configuration.duration(Settings.completedKeep)
        masters = max(copies, try configuration.duration(Settings.archiveAfter))
    }
}
