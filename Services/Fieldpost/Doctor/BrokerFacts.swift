import Kafka
import Model

/// What brokers say of themselves, of the catalogue's topics and of its groups.
struct BrokerFacts: Sendable {
    let metadata: ClusterMetadata
    /// By topic its settings, or why they are not told; `nil` when the broker does not know the question.
    var topicSettings: [String: Result<[String: String], KafkaError>]?
    /// Of one of the brokers; `nil` when it does not tell.
    var brokerSettings: [String: String]?
    /// The members of each group; `nil` when the brokers do not tell of groups.
    var members: [String: Int]?
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
            facts.members = Dictionary(groups.map { ($0.name, $0.members.count) }) { first, _ in first }
        }
        for (group, answer) in try admin.committed(Self.questions(facts.metadata)) {
            if case .failure(let error) = answer { facts.refusedGroups[group] = error }
        }
        return facts
    }

    /// Of each group of the catalogue the partitions that it reads, as far as they are there.
    private static func questions(_ metadata: ClusterMetadata) -> [String: [TopicPartition]?] {
        var questions: [String: [TopicPartition]?] = [:]
        for service in Services.all {
            let partitions = service.topics.flatMap { topic in
                (0..<(metadata.topics[topic.name] ?? 0)).map { TopicPartition(topic: topic.name, partition: $0) }
            }
            if !partitions.isEmpty { questions[service.name] = partitions }
        }
        return questions
    }
}
