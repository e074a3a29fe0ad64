import ServiceSettings

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

    static let partitions = Setting(
        "monitor.partitions", .integer(0...1_000_000), default: "20000",
        help: """
            how many partitions, counted once for each group that reads them, are told of one by one; with more of \
            them, only those on which something is wrong
            """)
    static let probe = Setting(
        "monitor.probe", .text(lengthMax: 63), default: "",
        help: "the environment through which a note is sent with every look, made for that alone; empty sends none")

    static let all: [Setting] =
        [
            .databaseURL, .kafkaBrokers, .kafkaProperties, interval, clusterName, others, partitions, probe,
        ] + console
}
