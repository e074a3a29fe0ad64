import ServiceSettings

/// Settings of `lag-monitor`, in addition to those of all services.
enum Settings {
    static let interval = Setting(
        "monitor.interval", .duration(.milliseconds(100) ... .seconds(600)), default: "10s",
        help: "collection interval of metrics from brokers and database")
    static let clusterName = Setting(
        "monitor.cluster", .text(lengthMax: 100), default: "fieldpost",
        help: "name of the Kafka cluster in metrics (label cluster_name)")
    static let others = Setting(
        "monitor.others", .choice(["true", "false"]), default: "true",
        help: "include consumer groups of other programs")

    static let partitions = Setting(
        "monitor.partitions", .integer(0...1_000_000), default: "20000",
        help: "partitions exported individually; beyond it, only those with a problem")
    static let probe = Setting(
        "monitor.probe", .text(lengthMax: 63), default: "",
        help: "dedicated environment for synthetic probes; empty: no probes")

    static let all: [Setting] =
        [
            .databaseURL, .kafkaBrokers, .kafkaProperties, interval, clusterName, others, partitions, probe,
        ] + console
}
