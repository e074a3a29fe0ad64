import ServiceSettings

/// What `change-relay` can be told, beside what all services can.
enum Settings {
    static let pageCountMax = Setting(
        "relay.page", .integer(1...50_000), default: "4000", help: "changes read from PostgreSQL at a time")
    static let compactionKeep = Setting(
        "compaction.keep", .duration(.seconds(60) ... .seconds(3_650 * 86_400)), default: "30d",
        help: "changes and tombstones younger than this stay: how long a device may be away without a new download")
    static let compactionInterval = Setting(
        "compaction.interval", .duration(.seconds(1) ... .seconds(86_400)), default: "60s",
        help: "how often each environment is looked at for what is older")

    static let all: [Setting] =
        [
            .databaseURL, .kafkaBrokers, .kafkaProperties, pageCountMax, compactionKeep, compactionInterval,
        ] + RetentionSettings.all
}
