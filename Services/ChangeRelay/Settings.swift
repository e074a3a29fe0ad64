import ServiceSettings

/// The settings of `change-relay`, in addition to the common ones.
enum Settings {
    static let pageCountMax = Setting(
        "relay.page", .integer(1...50_000), default: "4000",
        help: "maximum number of changes read from PostgreSQL per page")
    static let compactionKeep = Setting(
        "compaction.keep", .duration(.seconds(60) ... .seconds(3_650 * 86_400)), default: "30d",
        help: "minimum age of removed changes and tombstones: the time a device can be offline without a new download")
    static let compactionInterval = Setting(
        "compaction.interval", .duration(.seconds(1) ... .seconds(86_400)), default: "60s",
        help: "interval between two compactions of an environment")

    static let all: [Setting] =
        [
            .databaseURL, .kafkaBrokers, .kafkaProperties, pageCountMax, compactionKeep, compactionInterval,
        ] + RetentionSettings.all
}
