import Kafka
import Realms

/// Whether a worker that failed like that would do so again, until a person has acted: the database's schema is not
/// the program's, or librdkafka refuses its configuration. For `Component.worker`.
@Sendable package func isFinal(_ error: any Error) -> Bool {
    error is SchemaMismatch || (error as? KafkaError)?.isInvalidArgument == true
}
