package import Kafka

/// State of groups and partitions on the brokers at one time.
package struct LagSnapshot: Sendable {
    /// A consumer group.
    package struct Group: Sendable {
        package let name: String
        /// Whether the group was requested with its topics, not discovered.
        package let isKnown: Bool
        /// Committed offsets, `nil` if there is none. Contains all partitions that the group has to read.
        package var offsets: [TopicPartition: Int64?]
        /// Number of members; `nil` if the brokers do not list them.
        package var memberCount: Int?
        /// Member ids from the brokers; `nil` if they do not list them.
        package var memberIDs: Set<String>?
        /// Whether a rebalance is in progress.
        package var isRebalancing = false
    }

    /// Time of the last response, in milliseconds since 1970.
    package let milliseconds: Int64
    /// First offset, and offset after the last message, of each partition that responded.
    package let available: [TopicPartition: Range<Int64>]
    package let groups: [Group]
    /// Failed queries, by subject.
    package var problems: [String: KafkaError] = [:]
    /// Number of partitions of every topic that exists; `nil` if unknown.
    package var partitionCounts: [String: Int32]?
}
