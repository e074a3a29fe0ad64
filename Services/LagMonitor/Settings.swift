import Runtime

/// What `lag-monitor` can be told, beside what all services can.
enum Settings {
    static let interval = Setting(
        "monitor.interval", .duration(.milliseconds(100) ... .seconds(600)), default: "10s",
        help: "time between two looks at the brokers and the database")
    static let clusterName = Setting(
        "monitor.cluster", .text(lengthMax: 100), default: "fieldpost",
        help: "what the metrics call the Kafka cluster (label cluster_name)")
    static let others = Setting(
        "monitor.others", .choice(["true", "false"]), default: "true",
        help: "whether consumer groups that are not Fieldpost's are watched too")

    static let all: [Setting] = [.databaseURL, .kafkaBrokers, .kafkaProperties, interval, clusterName, others]
}
