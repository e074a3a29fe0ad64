package import Kafka

/// What brokers told of groups and partitions at one time.
package struct LagLook: Sendable {
    /// What one group has to read, and has read.
    package struct Group: Sendable {
        package let name: String
        /// Whether it was asked for by name, and not found among those that there are.
        package let isKnown: Bool
        /// What is known of how far it is; all partitions that it has to read are here.
        package var offsets: [TopicPartition: Int64?]
        /// How many members it has; `nil` when the brokers do not tell.
        package var memberCount: Int?
        /// The names that the brokers gave its members; `nil` when they do not tell.
        package var memberIDs: Set<String>?
        /// Whether its members are about to share its partitions out anew.
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

    /// Milliseconds since 1970, when the last answer was there.
    package let milliseconds: Int64
    /// Of each partition that told it, the offset of its first message, and that after its last one.
    package let available: [TopicPartition: Range<Int64>]
    package let groups: [Group]
    /// Why something is not known, by what was asked for.
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
