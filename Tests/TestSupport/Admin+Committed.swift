package import Kafka

extension Admin {
    /// Returns the committed offsets of a group for these partitions; partitions without a commit are absent.
    package borrowing func committed(
        group: String, _ partitions: [TopicPartition]
    ) throws -> [TopicPartition: Int64] {
        try committed([group: partitions])[group]?.get() ?? [:]
    }
}
