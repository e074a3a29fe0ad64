import Kafka
package import Model
package import ServiceRuntime
package import ServiceSettings

extension WorkerConfiguration {
    /// The configuration of a service's workers, from ``Setting/worker``. The consumer group has the service's name.
    ///
    /// - Throws: For a property that librdkafka rejects.
    package init(_ context: Context, topics: [Topic]) throws(ConfigurationError) {
        let configuration = context.configuration
        self.init(
            group: context.name, topics: topics.map(\.name), brokers: try configuration.text(.kafkaBrokers),
            properties: try configuration.properties(under: "kafka.", problem: Property.problem),
            conninfo: try configuration.text(.databaseURL))
    }
}
