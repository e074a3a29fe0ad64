
/// The settings that several services have.
extension Setting {
    package static let databaseURL = Setting(
        "database.url", .text(lengthMax: 4096), default: nil, isSecret: true,
        help: "PostgreSQL connection string: postgresql://user:password@host:port/database or key=value pairs")
    package static let kafkaBrokers = Setting(
        "kafka.brokers", .text(lengthMax: 4096), default: "127.0.0.1:9092",
        help: "Kafka bootstrap servers, host:port separated by commas")
    package static let kafkaProperties = Setting(
        "kafka", .properties, default: "",
        help: "any other librdkafka property: FIELDPOST_KAFKA_SECURITY_PROTOCOL is security.protocol; one that "
            + "librdkafka does not take is an error at start")
    package static let workerCount = Setting(
        "worker.count", .integer(1...64), default: "2",
        help: "worker threads, each with a Kafka consumer and a PostgreSQL connection")
    package static let backendCallMax = Setting(
        "backend.call.max", .duration(.milliseconds(100) ... .seconds(120)), default: "10s",
        help: "the longest a single HTTP call to a back end may take")
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
    package static let tracingEndpoint = Setting(
        "tracing.endpoint", .text(lengthMax: 4096), default: "",
        help: "OTLP receiver that spans are sent to over HTTP, as JSON, such as http://collector:4318; /v1/traces is "
            + "added")
    package static let tracingSample = Setting(
        "tracing.sample", .text(lengthMax: 16), default: "0.1",
        help: "share of the requests without traceparent that begin a trace, from 0 to 1; whether one with it is "
            + "recorded, its caller says")
    package static let tracingHeaders = Setting(
        "tracing.headers", .list(countMax: 16), default: "", isSecret: true,
        help: "headers for the OTLP receiver, name=value, such as its key")

    package static let httpHost = Setting(
        "http.host", .text(lengthMax: 255), default: "127.0.0.1", help: "address that devices are served on")
    /// The port that devices are served on; each service has a default of its own.
    package static func httpPort(default port: Int) -> Setting {
        Setting("http.port", .integer(0...65535), default: "\(port)", help: "port of http.host; 0 takes a free one")
    }
    package static let httpConnectionsMax = Setting(
        "http.connections.max", .integer(1...200_000), default: "20000", help: "connections of devices at a time")
    package static let httpNetworkConnectionsMax = Setting(
        "http.connections.network.max", .integer(0...200_000), default: "2000",
        help: "connections of one network at a time, an IPv4 address or an IPv6 /64; further ones are closed. 0: no "
            + "limit, as whenever http.proxies is not 0")
    package static let tlsCertificate = Setting(
        "tls.certificate", .text(lengthMax: 4096), default: "",
        help: "PEM file of the certificate and its chain, read at start; with tls.key the service speaks TLS itself")
    package static let tlsKey = Setting(
        "tls.key", .text(lengthMax: 4096), default: "", help: "PEM file of the certificate's private key")
    package static let corsOrigins = Setting(
        "cors.origins", .list(countMax: 32), default: "",
        help: "origins whose pages may call, such as https://app.example.com, separated by commas")
    package static let httpProxies = Setting(
        "http.proxies", .integer(0...8), default: "0",
        help: "proxies that all requests come through, each of which adds to X-Forwarded-For who called it")
    package static let httpHeadMax = Setting(
        "http.head.max", .duration(.seconds(1) ... .seconds(600)), default: "15s",
        help: "time for a connection's first request to arrive up to its body, TLS included")
    package static let httpBodyMax = Setting(
        "http.body.max", .duration(.seconds(1) ... .seconds(600)), default: "120s",
        help: "time for a request's body to arrive")

    /// Settings of services that meet strangers, beside their port.
    package static let edge: [Setting] = [
        .httpHost, .httpConnectionsMax, .httpNetworkConnectionsMax, .tlsCertificate, .tlsKey, .corsOrigins,
        .httpProxies,
    ]

    /// Settings of services whose workers read events.
    package static let worker: [Setting] = [.databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount]

    /// Settings of services whose workers read events and call back ends.
    package static let callingWorker: [Setting] = worker + [.secretKeys, .backendCallMax]

    /// Settings that every service has.
    package static let runtime: [Setting] = [
        .logLevel, .logFormat, .adminHost, .adminPort, .shutdownMax, .stallMax, .tracingEndpoint, .tracingSample,
        .tracingHeaders,
    ]

    /// Settings a service accepts without having them, so that services can share one environment and one file.
    package static let shared: [Setting] =
        runtime + [
            .databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount, .secretKeys,
        ]
}
