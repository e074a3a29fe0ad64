public import FoundationEssentials
internal import Kafka
internal import ServiceSettings

/// The brokers, and properties such as those of TLS and SASL.
public struct KafkaSettings: Equatable, Sendable {
    /// `host:port`, separated by commas.
    public var brokers: String
    /// Properties of librdkafka, for example `["security.protocol": "SASL_SSL"]`.
    ///
    /// Source of the names: https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md
    public var properties: [String: String]

    /// Creates settings.
    public init(brokers: String, properties: [String: String] = [:]) {
        self.brokers = brokers
        self.properties = properties
    }

    /// Reads the environment variables of Fieldpost's services: `FIELDPOST_KAFKA_BROKERS` (`127.0.0.1:9092` if it is
    /// not set), and any other property, for example `FIELDPOST_KAFKA_SECURITY_PROTOCOL`.
    ///
    /// - Throws: ``IntegrationError/invalidSetting(_:)`` with the variable that librdkafka rejects.
    public init(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(IntegrationError) {
        do {
            let configuration = try Configuration(
                [.kafkaBrokers, .kafkaProperties], environment: environment.filter { $0.key.hasPrefix(Self.prefix) })
            brokers = try configuration.text(.kafkaBrokers)
            properties = try configuration.properties(under: "kafka.", problem: Property.problem)
        } catch {
            throw .invalidSetting(error.description)
        }
    }

    private static let prefix = "FIELDPOST_KAFKA_"
}
