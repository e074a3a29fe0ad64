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
    package static let secretKeys = Setting(
        "secret.keys", .list(countMax: 8), default: "", isSecret: true,
        help: "keys of 32 bytes in base64 that secrets in the database are sealed with; the first seals, all open")
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

    package static let tlsCertificate = Setting(
        "tls.certificate", .text(lengthMax: 4096), default: "",
        help: "PEM file of the certificate and its chain; with tls.key the service speaks TLS itself")
    package static let tlsKey = Setting(
        "tls.key", .text(lengthMax: 4096), default: "", help: "PEM file of the certificate's private key")
    package static let corsOrigins = Setting(
        "cors.origins", .list(countMax: 32), default: "",
        help: "origins whose pages may call, such as https://app.example.com")
    package static let httpProxies = Setting(
        "http.proxies", .integer(0...8), default: "0",
        help: "proxies that all requests come through, each of which adds to X-Forwarded-For who called it")
    package static let httpHeadMax = Setting(
        "http.head.max", .duration(.seconds(1) ... .seconds(600)), default: "15s",
        help: "time for a connection's first request to arrive up to its body")
    package static let httpBodyMax = Setting(
        "http.body.max", .duration(.seconds(1) ... .seconds(600)), default: "120s",
        help: "time for a request's body to arrive")

    /// Settings of services that meet strangers.
    package static let edge: [Setting] = [
        .tlsCertificate, .tlsKey, .corsOrigins, .httpProxies,
    ]

    /// Settings that every service has.
    package static let runtime: [Setting] = [
        .logLevel, .logFormat, .adminHost, .adminPort, .shutdownMax, .stallMax,
    ]

    /// Settings a service accepts without having them, so that services can share one environment and one file.
    package static let shared: [Setting] =
        runtime + [
            .databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount, .secretKeys,
        ]
}
