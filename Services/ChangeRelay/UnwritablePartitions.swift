import Essentials
import FoundationEssentials
import Kafka
import Model

/// Topics and partitions that cannot be written at present. A pure value, independent of the broker and the relay.
///
/// Messages for them are deferred: the topic is republished when it can be written, and publishing to others continues.
struct UnwritablePartitions {
    /// Time until a retry of a topic whose messages the broker rejects, or of a partition whose leader does not
    /// respond.
    static let retryInterval = Duration.seconds(30)

    private var partitionCounts: [String: Int32] = [:]
    private var missing: Set<String> = []
    private var leaderless: Set<TopicPartition> = []
    private var rejected: [String: (reason: String, until: ContinuousClock.Instant)] = [:]
    /// Partitions whose leader does not accept messages while others do; retried at that time, if the leader responds.
    private var unresponsiveUntil: [TopicPartition: ContinuousClock.Instant] = [:]
    var unresponsive: Set<TopicPartition> { Set(unresponsiveUntil.keys) }

    /// Updates the state of `topics` from the cluster's metadata.
    ///
    /// - Parameter responding: Partitions whose leaders responded.
    mutating func update(
        _ metadata: ClusterMetadata, topics: [String], responding: some Sequence<TopicPartition>,
        now: ContinuousClock.Instant = .now
    ) {
        for partition in responding {
            if let until = unresponsiveUntil[partition], until <= now { unresponsiveUntil[partition] = nil }
        }
        partitionCounts = metadata.topics
        missing = Set(topics.filter { metadata.topics[$0] == nil })
        leaderless = metadata.leaderless
        rejected = rejected.filter { $0.value.until > now }
    }

    /// Records that a topic is needed from now on. It is missing if the last report did not have it.
    mutating func require(_ topic: String) {
        if !partitionCounts.isEmpty, partitionCounts[topic] == nil { missing.insert(topic) }
    }

    /// Records that the broker rejects a topic's messages.
    mutating func reject(_ topic: String, _ reason: String, now: ContinuousClock.Instant = .now) {
        rejected[topic] = (reason, now + Self.retryInterval)
    }

    /// Records that the partition's leader did not accept a message in time.
    mutating func markUnresponsive(_ partition: TopicPartition, now: ContinuousClock.Instant = .now) {
        unresponsiveUntil[partition] = now + Self.retryInterval
    }

    /// Whether the partition cannot be written, as far as its state was reported.
    func contains(_ partition: TopicPartition) -> Bool {
        missing.contains(partition.topic) || rejected[partition.topic] != nil || leaderless.contains(partition)
            || unresponsiveUntil[partition] != nil
    }

    /// Whether a message with this key cannot be written.
    func contains(_ topic: String, key id: UUID) -> Bool {
        if missing.isEmpty, leaderless.isEmpty, rejected.isEmpty, unresponsiveUntil.isEmpty { return false }
        if missing.contains(topic) || rejected[topic] != nil { return true }
        guard let count = partitionCounts[topic], count > 0 else { return false }
        let partition = TopicPartition.partition(ofKey: Array(id.text.utf8), count: count)
        return contains(TopicPartition(topic: topic, partition: partition))
    }

    /// Whether the broker has the partition; `nil` if the topic's state was not reported.
    func has(_ partition: TopicPartition) -> Bool? { partitionCounts[partition.topic].map { partition.partition < $0 } }

    /// Returns the reasons why topics cannot be written, or not completely.
    func reasons(of topics: [String]) -> [String: String] {
        var reasons = rejected.mapValues(\.reason)
        for partition in unresponsiveUntil.keys.sorted(by: { $0.partition > $1.partition })
        where topics.contains(partition.topic) {
            reasons[partition.topic] = "the leader of partition \(partition.partition) accepts no messages"
        }
        for partition in leaderless where topics.contains(partition.topic) {
            reasons[partition.topic] = "partition \(partition.partition) has no leader"
        }
        // Brokers do not list a topic that a client is not authorized to describe.
        for topic in missing {
            reasons[topic] =
                "the topic does not exist, or this client is not authorized to describe it: run fieldpost topics "
                + "apply, or grant Describe"
        }
        return reasons
    }
}
