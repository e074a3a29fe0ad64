import ServiceSettings

/// What `task-fan-out` can be told, beside what all services can.
enum Settings {
    private static let age = Setting.Kind.duration(.seconds(1) ... .seconds(3_650 * 86_400))

    static let completedKeep = Setting(
        "task.completed.keep", age, default: "30d",
        help: "how long a completed task's copy stays with its team or person")
    static let archiveAfter = Setting(
        "task.archive.after", age, default: "400d",
        help: "how long a completed task stays in /manager before it moves to /archive; not less than "
            + "task.completed.keep")
    static let sweepInterval = Setting(
        "task.sweep.interval", .duration(.seconds(1) ... .seconds(86_400)), default: "1h",
        help: "how often it is looked for tasks that were completed so long ago")

    static let all = Setting.worker + [completedKeep, archiveAfter, sweepInterval]
}

extension KeepLimits {
    init(_ configuration: Configuration) throws(ConfigurationError) {
        self.init()
        copies = try configuration.duration(Settings.completedKeep)
        masters = max(copies, try configuration.duration(Settings.archiveAfter))
    }
}
