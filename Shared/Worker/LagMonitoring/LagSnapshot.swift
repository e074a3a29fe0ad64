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
        package var isRebalancing: Bool

        package init(
            name: String, isKnown: Bool, offsets: [TopicPartition: Int64?], memberCount: Int?,
            memberIDs: Set<String>? = nil, isRebalancing: Bool = false
        ) {
            self.name = name
            self.isKnown = isKnown
            self.offsets = offsets
            self.memberCount = memberCount
            self.memberIDs = memberIDs
            self.isRebalancing = isRebalancing
        }
    }

    /// Time of the last response, in milliseconds since 1970.
    package let milliseconds: Int64
    /// First offset, and offset after the last message, of each partition that responded.
    package let available: [TopicPartition: Range<Int64>]
    package let groups: [Group]
    /// Failed queries, by subject.
    package let problems: [String: KafkaError]

    package init(
        milliseconds: Int64, available: [TopicPartition: Range<Int64>], groups: [Group],
        problems: [String: KafkaError] = [:]
    ) {
        self.milliseconds = milliseconds
        self.available = available
        self.groups = groups
        self.problems = problems
    }
}
