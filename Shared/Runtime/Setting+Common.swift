/// The settings that several services have.
extension Setting {
    package static let databaseURL = Setting(
        "database.url", .text(lengthMax: 4096), default: nil, isSecret: true,
        help: "PostgreSQL connection string: postgresql://user:password@host:port/database or key=value pairs")
    package static let kafkaBrokers = Setting(
        "kafka.brokers", .text(lengthMax: 4096), default: "127.0.0.1:9092",
        help: "Kafka bootstrap servers, host:port separated by commas")
    /// Any librdkafka property: `FIELDPOST_KAFKA_SECURITY_PROTOCOL` is `security.protocol`.
    package static let kafkaProperties = Setting(
        "kafka", .properties, default: "",
        help: "any other librdkafka property, for example FIELDPOST_KAFKA_SECURITY_PROTOCOL=SASL_SSL")
    package static let workerCount = Setting(
        "worker.count", .integer(1...64), default: "2",
        help: "worker threads, each with a Kafka consumer and a PostgreSQL connection")
    package static let logLevel = Setting(
        "log.level", .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]), default: "info",
        help: "least severe level that is logged")
    package static let logFormat = Setting(
        "log.format", .choice(["json", "text"]), default: "json",
        help: "json: one object per line; text: for people at a terminal")
    package static let adminHost = Setting(
        "admin.host", .text(lengthMax: 255), default: "127.0.0.1",
        help: "address that /metrics and /health/… listen on")
    package static let adminPort = Setting(
        "admin.port", .integer(0...65535), default: "0", help: "port of /metrics and /health/…; 0 takes a free one")
    package static let shutdownMax = Setting(
        "shutdown.max", .duration(.milliseconds(100) ... .seconds(600)), default: "20s",
        help: "time to finish work after SIGTERM or SIGINT; then the process exits with status 1")
    package static let stallMax = Setting(
        "stall.max", .duration(.seconds(1) ... .seconds(3600)), default: "60s",
        help: "a worker loop without progress for longer fails /health/live")

    /// Settings that every service has.
    package static let runtime: [Setting] = [
        .logLevel, .logFormat, .adminHost, .adminPort, .shutdownMax, .stallMax,
    ]

    /// Settings a service accepts without having them, so that services can share one environment and one file.
    package static let shared: [Setting] = runtime + [.databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount]
}
