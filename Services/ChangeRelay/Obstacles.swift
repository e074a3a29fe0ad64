import Essentials
import FoundationEssentials
import Kafka
import Model

/// Topics and partitions that cannot be written now. A value: it knows neither the broker nor the relay.
///
/// What is not written to them is owed: the topic is published again once they can be, and the others go on meanwhile.
struct Obstacles {
    /// Time until a retry of a topic whose messages the broker refuses, or of a partition whose leader takes none.
    static let asideMax = Duration.seconds(30)

    private var partitionCounts: [String: Int32] = [:]
    private var missing: Set<String> = []
    private var leaderless: Set<TopicPartition> = []
    private var refused: [String: (reason: String, until: ContinuousClock.Instant)] = [:]
    /// Partitions whose leader takes no messages, while others do: retried at that time, once it answers.
    private var silencedUntil: [TopicPartition: ContinuousClock.Instant] = [:]
    var silenced: Set<TopicPartition> { Set(silencedUntil.keys) }

    /// Takes in what the cluster has of `topics`.
    ///
    /// - Parameter answered: Partitions whose leaders answered.
    mutating func update(
        _ metadata: ClusterMetadata, topics: [String], answered: some Sequence<TopicPartition>,
        now: ContinuousClock.Instant = .now
    ) {
        for place in answered {
            if let until = silencedUntil[place], until <= now { silencedUntil[place] = nil }
        }
        partitionCounts = metadata.topics
        missing = Set(topics.filter { metadata.topics[$0] == nil })
        leaderless = metadata.leaderless
        refused = refused.filter { $0.value.until > now }
    }

    /// The broker refuses a topic's messages.
    mutating func refuse(_ topic: String, _ reason: String, now: ContinuousClock.Instant = .now) {
        refused[topic] = (reason, now + Self.asideMax)
    }

    /// The partition's leader does not take a message in time.
    mutating func silence(_ place: TopicPartition, now: ContinuousClock.Instant = .now) {
        silencedUntil[place] = now + Self.asideMax
    }

    /// Whether what is known of the partition says that it cannot be written.
    func blocks(_ place: TopicPartition) -> Bool {
        missing.contains(place.topic) || refused[place.topic] != nil || leaderless.contains(place)
            || silencedUntil[place] != nil
    }

    /// Whether a message of that key could not be written.
    func blocks(_ topic: String, key id: UUID) -> Bool {
        if missing.isEmpty, leaderless.isEmpty, refused.isEmpty, silencedUntil.isEmpty { return false }
        if missing.contains(topic) || refused[topic] != nil { return true }
        guard let count = partitionCounts[topic], count > 0 else { return false }
        let partition = TopicPartition.partition(ofKey: Array(id.text.utf8), count: count)
        return blocks(TopicPartition(topic: topic, partition: partition))
    }

    /// Whether the broker has the partition: `nil` when nothing is known of its topic.
    func has(_ place: TopicPartition) -> Bool? { partitionCounts[place.topic].map { place.partition < $0 } }

    /// Why a topic cannot be written, or not all of it, by topic.
    func reasons(of topics: [String]) -> [String: String] {
        var reasons = refused.mapValues(\.reason)
        for place in silencedUntil.keys.sorted(by: { $0.partition > $1.partition }) where topics.contains(place.topic) {
            reasons[place.topic] = "the leader of partition \(place.partition) takes no messages"
        }
        for place in leaderless where topics.contains(place.topic) {
            reasons[place.topic] = "partition \(place.partition) has no leader"
        }
        // Brokers do not list a topic that a client may not describe.
        for topic in missing {
            reasons[topic] =
                "it does not exist, or this client may not describe it: run fieldpost topics apply, or grant Describe"
        }
        return reasons
    }
}
