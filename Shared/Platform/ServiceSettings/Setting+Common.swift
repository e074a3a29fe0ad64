/// The settings of several services.
extension Setting {
    package static let databaseURL = Setting(
        "database.url", .text(lengthMax: 4096), default: nil, isSecret: true,
        help: "PostgreSQL connection string: postgresql://user:password@host:port/database or key=value pairs")
    package static let kafkaBrokers = Setting(
        "kafka.brokers", .text(lengthMax: 4096), default: "127.0.0.1:9092",
        help: "Kafka bootstrap servers, host:port separated by commas")
    package static let kafkaProperties = Setting(
        "kafka", .properties, default: "",
        help: "any other librdkafka property: FIELDPOST_KAFKA_SECURITY_PROTOCOL is security.protocol; an unsupported "
            + "property is an error at start")
    package static let workerCount = Setting(
        "worker.count", .integer(1...64), default: "1",
        help: "worker threads, each with a Kafka consumer and a PostgreSQL connection")
    package static let backendCallMax = Setting(
        "backend.call.max", .duration(.milliseconds(100) ... .seconds(120)), default: "10s",
        help: "maximum time of one HTTP call to a back end")
    package static let secretKeys = Setting(
        "secret.keys", .list(countMax: 8), default: "", isSecret: true,
        help: "keys of 32 bytes in base64 that encrypt secrets in the database; the first encrypts, all decrypt")
    package static let logLevel = Setting(
        "log.level", .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]), default: "info",
        help: "minimum level of logged events")
    package static let logFormat = Setting(
        "log.format", .choice(["json", "text"]), default: "json",
        help: "json: one object per line; text: for people at a terminal")
    package static let adminHost = Setting(
        "admin.host", .text(lengthMax: 255), default: "127.0.0.1",
        help: "listen address of /metrics and /health/…")
    package static let adminPort = Setting(
        "admin.port", .integer(0...65535), default: "0", help: "port of /metrics and /health/…; 0 selects a free one")
    package static let shutdownMax = Setting(
        "shutdown.max", .duration(.milliseconds(100) ... .seconds(600)), default: "20s",
        help: "maximum time for a clean shutdown after SIGTERM or SIGINT; then the process exits with status 1")
    package static let stallMax = Setting(
        "stall.max", .duration(.seconds(1) ... .seconds(3600)), default: "60s",
        help: "time without progress of a worker loop after which /health/live fails")
    package static let tracingEndpoint = Setting(
        "tracing.endpoint", .text(lengthMax: 4096), default: "",
        help: "OTLP receiver of spans over HTTP in JSON, such as http://collector:4318; /v1/traces is "
            + "appended")
    package static let tracingSample = Setting(
        "tracing.sample", .text(lengthMax: 16), default: "0.1",
        help: "share of requests without traceparent that start a trace, from 0 to 1; for requests with it, "
            + "the caller decides")
    package static let tracingHeaders = Setting(
        "tracing.headers", .list(countMax: 16), default: "", isSecret: true,
        help: "headers for the OTLP receiver, name=value, such as an API key")

    package static let httpHost = Setting(
        "http.host", .text(lengthMax: 255), default: "127.0.0.1", help: "listen address of the device API")
    /// The port of the device API, with a default per service.
    package static func httpPort(default port: Int) -> Setting {
        Setting("http.port", .integer(0...65535), default: "\(port)", help: "port of http.host; 0 selects a free one")
    }
    package static let httpConnectionsMax = Setting(
        "http.connections.max", .integer(1...200_000), default: "20000",
        help: "maximum number of concurrent device connections")
    package static let httpNetworkConnectionsMax = Setting(
        "http.connections.network.max", .integer(0...200_000), default: "2000",
        help:
            "maximum number of concurrent connections per network (IPv4 address or IPv6 /64); others are closed. 0: no "
            + "limit, as if http.proxies is not 0")
    package static let tlsCertificate = Setting(
        "tls.certificate", .text(lengthMax: 4096), default: "",
        help: "PEM file of the certificate and its chain; with tls.key the service terminates TLS itself. Changed "
            + "files are used without a restart")
    package static let tlsKey = Setting(
        "tls.key", .text(lengthMax: 4096), default: "", help: "PEM file of the certificate's private key")
    package static let corsOrigins = Setting(
        "cors.origins", .list(countMax: 32), default: "",
        help: "origins whose pages may send requests (CORS), such as https://app.example.com, separated by commas")
    package static let httpProxies = Setting(
        "http.proxies", .integer(0...8), default: "0",
        help: "number of trusted proxies in front of the service, each of which appends its peer to X-Forwarded-For")
    package static let httpHeadMax = Setting(
        "http.head.max", .duration(.seconds(1) ... .seconds(600)), default: "15s",
        help: "maximum time until the head of a connection's first request has arrived, including TLS")
    package static let httpBodyMax = Setting(
        "http.body.max", .duration(.seconds(1) ... .seconds(600)), default: "120s",
        help: "maximum time until a request's body has arrived")

    /// Settings of services with a public endpoint, except their port.
    package static let edge: [Setting] = [
        .httpHost, .httpConnectionsMax, .httpNetworkConnectionsMax, .tlsCertificate, .tlsKey, .corsOrigins,
        .httpProxies,
    ]

    /// Settings of services whose workers consume events.
    package static let worker: [Setting] = [.databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount]

    /// Settings of services whose workers consume events and call back ends.
    package static let callingWorker: [Setting] = worker + [.secretKeys, .backendCallMax]

    /// Settings of all services.
    package static let runtime: [Setting] = [
        .logLevel, .logFormat, .adminHost, .adminPort, .shutdownMax, .stallMax, .tracingEndpoint, .tracingSample,
        .tracingHeaders,
    ]

    /// Settings that a service accepts without using them, so that services can share one environment and one file.
    package static let shared: [Setting] =
        runtime + [
            .databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount, .secretKeys,
        ]
}
