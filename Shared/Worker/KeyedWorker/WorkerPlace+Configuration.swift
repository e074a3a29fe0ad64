import Kafka
package import Model
package import ServiceRuntime
package import ServiceSettings

extension WorkerPlace {
    /// The place of a service's workers, by the settings of ``Setting/worker``. Its consumer group has its name.
    ///
    /// - Throws: A property that librdkafka does not take.
    package init(_ context: Context, topics: [Topic]) throws(ConfigurationError) {
        let configuration = context.configuration
        self.init(
            group: context.name, topics: topics.map(\.name), brokers: try configuration.text(.kafkaBrokers),
            properties: try configuration.properties(under: "kafka.", problem: Property.problem),
            conninfo: try configuration.text(.databaseURL))
    }
}
