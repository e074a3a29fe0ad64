import Kafka
import Model

/// What brokers say of themselves, of the catalogue's topics and of its groups.
struct BrokerFacts: Sendable {
    let metadata: ClusterMetadata
    /// By topic its settings, or why they are not told; `nil` when the broker does not know the question.
    var topicSettings: [String: Result<[String: String], KafkaError>]?
    /// Of one of the brokers; `nil` when it does not tell.
    var brokerSettings: [String: String]?
    /// The groups that brokers report to this client; `nil` when they report none at all.
    var groups: [String: ConsumerGroup]?
    /// Groups of the catalogue that have committed offsets.
    var committedGroups: Set<String> = []
    /// Groups of the catalogue whose offsets were refused, and why.
    var refusedGroups: [String: KafkaError] = [:]

    /// - Throws: When no broker answers.
    static func load(_ admin: borrowing Admin) throws(KafkaError) -> BrokerFacts {
        var facts = BrokerFacts(metadata: try admin.metadata())
        // What the mock cluster does not know, and what is not for everybody, is left out; the rest counts.
        facts.topicSettings = try? admin.settings(
            of: Topics.all.map(\.name).filter { facts.metadata.topics[$0] != nil })
        if let broker = facts.metadata.brokers.first {
            facts.brokerSettings = try? admin.settings(ofBroker: broker.id)
        }
        if let (groups, failure) = try? admin.groups(), failure == nil {
            facts.groups = Dictionary(groups.map { ($0.name, $0) }) { first, _ in first }
        }
        for (group, answer) in try admin.committed(Self.questions(facts.metadata)) {
            switch answer {
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
        guard let found = groups[group] else { return committedGroups.contains(group) ? nil : 0 }
        return found.hasKnownMembers ? found.members.count : nil
    }

    /// The same in words.
    func memberText(_ group: String) -> String {
        if let count = memberCount(group) { return "\(count) workers" }
        if let failure = refusedGroups[group] ?? groups?[group]?.failure {
            return "members unknown (\(failure.message))"
        }
        guard let groups else { return "workers are unknown" }
        return groups[group] == nil
            ? "members unknown (brokers do not list the group)" : "members unknown (new consumer protocol)"
    }

    /// Of each group of the catalogue the partitions that it reads, or all that it has committed when this client sees
    /// none of its topics: the request shows in any case whether it may describe the group.
    private static func questions(_ metadata: ClusterMetadata) -> [String: [TopicPartition]?] {
        var questions: [String: [TopicPartition]?] = [:]
        for service in Services.all {
            let partitions = service.topics.flatMap { topic in
                (0..<(metadata.topics[topic.name] ?? 0)).map { TopicPartition(topic: topic.name, partition: $0) }
            }
            if !service.topics.isEmpty { questions[service.name] = partitions.isEmpty ? .some(nil) : partitions }
        }
        return questions
    }
}
