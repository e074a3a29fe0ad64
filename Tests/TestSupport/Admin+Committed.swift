package import Kafka

extension Admin {
    /// What one group has committed of these partitions; a partition of which it committed nothing is absent.
    package borrowing func committed(
        group: String, _ partitions: [TopicPartition]
    ) throws -> [TopicPartition: Int64] {
        try committed([group: partitions])[group]?.get() ?? [:]
    }
}
