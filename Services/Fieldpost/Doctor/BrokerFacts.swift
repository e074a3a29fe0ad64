import Kafka
import Model

/// The state of the brokers, of topics and of the catalogue's consumer groups.
struct BrokerFacts: Sendable {
    let metadata: ClusterMetadata
    /// The settings or an error by topic; `nil` if the broker does not support the request.
    var topicSettings: [String: Result<[String: String], KafkaError>]?
    /// The settings of one broker; `nil` if it does not report them.
    var brokerSettings: [String: String]?
    /// The groups that brokers report to this client; `nil` when they report none at all.
    var groups: [String: ConsumerGroup]?
    /// Groups of the catalogue that have committed offsets.
    var committedGroups: Set<String> = []
    /// Groups of the catalogue whose offsets were refused, and why.
    var refusedGroups: [String: KafkaError] = [:]

    /// - Parameter topics: Those whose settings are queried.
    /// - Throws: If no broker responds.
    static func load(_ admin: borrowing Admin, _ topics: [Topic]) throws(KafkaError) -> BrokerFacts {
        var facts = BrokerFacts(metadata: try admin.metadata())
        // Requests that the mock cluster does not support, or that are not authorized, are skipped.
        facts.topicSettings = try? admin.settings(
            of: topics.map(\.name).filter { facts.metadata.topics[$0] != nil })
        if let broker = facts.metadata.brokers.first {
            facts.brokerSettings = try? admin.settings(ofBroker: broker.id)
        }
        if let (groups, failure) = try? admin.groups(), failure == nil {
            facts.groups = Dictionary(groups.map { ($0.name, $0) }) { first, _ in first }
        }
        for (group, result) in try admin.committed(Self.requests(facts.metadata)) {
            switch result {
            case .success(let offsets): if !offsets.isEmpty { facts.committedGroups.insert(group) }
            case .failure(let error): facts.refusedGroups[group] = error
            }
        }
        return facts
    }

    /// Number of members of a group; `nil` if unknown.
    func memberCount(_ group: String) -> Int? {
        guard let groups, refusedGroups[group] == nil else { return nil }
        // Brokers list every group that has committed, to a client that may describe it.
        guard let description = groups[group] else { return committedGroups.contains(group) ? nil : 0 }
        return description.hasReliableMembers ? description.memberIDs.count : nil
    }

    /// The number of members as text, or the reason why it is unknown.
    func memberText(_ group: String) -> String {
        if let count = memberCount(group) { return "\(count) members" }
        if let failure = refusedGroups[group] ?? groups?[group]?.failure {
            return "members unknown (\(failure.message))"
        }
        guard let groups else { return "members unknown" }
        return groups[group] == nil
            ? "members unknown (brokers do not list the group)" : "members unknown (new consumer protocol)"
    }

    /// The partitions that each group of the catalogue reads, or all of its committed ones if this client sees none of
    /// its topics: in any case the request shows whether it may describe the group.
    private static func requests(_ metadata: ClusterMetadata) -> [String: [TopicPartition]?] {
        var requests: [String: [TopicPartition]?] = [:]
        for service in Services.all {
            let partitions = service.topics.flatMap { topic in
                (0..<(metadata.topics[topic.name] ?? 0)).map { TopicPartition(topic: topic.name, partition: $0) }
            }
            if !service.topics.isEmpty { requests[service.name] = partitions.isEmpty ? .some(nil) : partitions }
        }
        return requests
    }
}
