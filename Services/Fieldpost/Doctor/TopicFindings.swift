import Essentials
import Kafka
import Model
import ServiceSettings

/// Compares the brokers' topics with the catalogue, for `fieldpost doctor` and `fieldpost topics check`.
enum TopicFindings {
    /// The minimum of `max.message.bytes`: more than the largest object with its headers.
    private static let messageBytesMin = 1_000_000

    /// Returns at least one finding for each topic.
    static func findings(_ topics: [Topic], _ facts: BrokerFacts) -> [DoctorFinding] {
        topics.flatMap { topic in
            let problems = problems(topic, facts)
            return problems.isEmpty ? [.good("topic \(topic.name)", seen(topic, facts))] : problems
        }
    }

    private static func problems(_ topic: Topic, _ facts: BrokerFacts) -> [DoctorFinding] {
        let check = "topic \(topic.name)"
        if let error = facts.metadata.refused[topic.name] {
            return [
                .failure(check, error.message, do: error.advice ?? "run the check again when the brokers are stable")
            ]
        }
        guard let partitionCount = facts.metadata.topics[topic.name] else {
            return [
                .failure(
                    check, "does not exist, or this client may not describe it",
                    do: "run fieldpost topics apply, or grant this client Describe on the topic")
            ]
        }
        var problems: [DoctorFinding] = []
        if Int(partitionCount) < topic.partitions {
            problems.append(
                .failure(
                    check, "\(partitionCount) partitions, fewer than \(topic.partitions)",
                    do: "run fieldpost topics scale \(topic.name) --partitions \(topic.partitions)"))
        }
        let leaderless = facts.metadata.leaderless.filter { $0.topic == topic.name }.map(\.partition).sorted()
        if let first = leaderless.first {
            problems.append(
                .failure(
                    check, "\(leaderless.count) partitions without a leader, such as \(first)",
                    do: "restart the brokers with their replicas"))
        }
        return problems + [replicas(check, topic, facts)].compactMap(\.self) + settings(check, topic, facts)
    }

    private static func replicas(_ check: String, _ topic: Topic, _ facts: BrokerFacts) -> DoctorFinding? {
        guard let replicas = facts.metadata.replicas[topic.name].map(Int.init) else { return nil }
        let needed = settings(of: topic, facts)["min.insync.replicas"].flatMap { Int($0) }
        func remedy(settingTo count: Int) -> String {
            "set it to \(count): kafka-configs --alter --topic \(topic.name)"
        }
        if let needed, needed > replicas {
            return .failure(
                check, "min.insync.replicas is \(needed), but there are \(replicas) replicas: all writes fail",
                do: remedy(settingTo: max(1, replicas - 1)))
        }
        // A single broker cannot have another replica.
        if replicas == 1, facts.metadata.brokers.count > 1 {
            return .warning(
                check, "one replica: its data is unavailable while its broker is",
                do: "add replicas with kafka-reassign-partitions; create new topics with topics apply --replication 3")
        }
        guard replicas > 1, let needed else { return nil }
        // With two replicas, one in sync must be enough if the other is unavailable.
        if needed == 1, replicas > 2 {
            return .warning(
                check, "min.insync.replicas is 1: a write is acknowledged by one broker only",
                do: remedy(settingTo: replicas - 1))
        }
        guard needed == replicas else { return nil }
        return .warning(
            check, "min.insync.replicas is all \(replicas) replicas: one unavailable broker stops all writes",
            do: remedy(settingTo: replicas - 1))
    }

    private static func settings(_ check: String, _ topic: Topic, _ facts: BrokerFacts) -> [DoctorFinding] {
        if case .failure(let error)? = facts.topicSettings?[topic.name] {
            return [
                .warning(
                    check, "settings unavailable: \(error.message)",
                    do: "grant this client DescribeConfigs on the topic")
            ]
        }
        let settings = settings(of: topic, facts)
        let alter = "kafka-configs --alter --topic \(topic.name) --add-config"
        var problems: [DoctorFinding] = []
        if let policy = settings["cleanup.policy"], policy.contains("compact") {
            problems.append(
                .failure(
                    check, "cleanup.policy is \(policy): consumers treat compacted messages as lost",
                    do: "\(alter) cleanup.policy=delete"))
        }
        let retention = topic.retention.milliseconds
        if let configured = settings["retention.ms"].flatMap({ Int64($0) }), configured >= 0, configured < retention {
            problems.append(
                .warning(
                    check,
                    "retention is \(Duration.milliseconds(configured).settingText), less than "
                        + "\(topic.retention.settingText)", do: "\(alter) retention.ms=\(retention)"))
        }
        if let bytes = settings["max.message.bytes"].flatMap({ Int($0) }), bytes < messageBytesMin {
            problems.append(
                .failure(
                    check, "max.message.bytes is \(bytes): large objects cannot be published",
                    do: "\(alter) max.message.bytes=1048588"))
        }
        return problems
    }

    static func settings(of topic: Topic, _ facts: BrokerFacts) -> [String: String] {
        (try? facts.topicSettings?[topic.name]?.get()) ?? [:]
    }

    private static func seen(_ topic: Topic, _ facts: BrokerFacts) -> String {
        let partitionCount = facts.metadata.topics[topic.name] ?? 0
        let more = Int(partitionCount) > topic.partitions ? ", \(topic.partitions) are declared" : ""
        let replicas = facts.metadata.replicas[topic.name].map { ", \($0) \($0 == 1 ? "replica" : "replicas")" } ?? ""
        let unavailable = facts.topicSettings == nil ? "; settings unavailable" : ""
        return "\(partitionCount) partitions\(more)\(replicas)\(unavailable)"
    }
}
