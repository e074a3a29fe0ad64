import Essentials
import Kafka
import Model
import ServiceSettings

/// Whether the brokers' topics are as the catalogue wants them. For `fieldpost doctor` and `fieldpost topics check`.
enum TopicFindings {
    /// More than any object has, with its headers.
    private static let messageBytesMin = 1_000_000

    /// What is to be said of each topic of the catalogue, at least one finding each.
    static func findings(_ topics: [Topic], _ facts: BrokerFacts) -> [DoctorFinding] {
        topics.flatMap { topic in
            let problems = problems(topic, facts)
            return problems.isEmpty ? [.good("topic \(topic.name)", seen(topic, facts))] : problems
        }
    }

    private static func problems(_ topic: Topic, _ facts: BrokerFacts) -> [DoctorFinding] {
        let check = "topic \(topic.name)"
        if let error = facts.metadata.refused[topic.name] {
            return [.failure(check, error.message, do: error.advice ?? "ask again when the brokers have settled")]
        }
        guard let found = facts.metadata.topics[topic.name] else {
            return [
                .failure(
                    check, "does not exist, or this client may not describe it",
                    do: "run fieldpost topics apply, or grant this client Describe on the topic")
            ]
        }
        var problems: [DoctorFinding] = []
        if Int(found) < topic.partitions {
            problems.append(
                .failure(
                    check, "\(found) partitions, fewer than \(topic.partitions)",
                    do: "run fieldpost topics scale \(topic.name) --partitions \(topic.partitions)"))
        }
        let leaderless = facts.metadata.leaderless.filter { $0.topic == topic.name }.map(\.partition).sorted()
        if let first = leaderless.first {
            problems.append(
                .failure(
                    check, "\(leaderless.count) partitions without a leader, such as \(first)",
                    do: "bring back the brokers that have copies of them"))
        }
        return problems + copies(check, topic, facts) + settings(check, topic, facts)
    }

    private static func copies(_ check: String, _ topic: Topic, _ facts: BrokerFacts) -> [DoctorFinding] {
        guard let copies = facts.metadata.replicas[topic.name].map(Int.init) else { return [] }
        let needed = settings(of: topic, facts)["min.insync.replicas"].flatMap { Int($0) }
        if let needed, needed > copies {
            return [
                .failure(
                    check, "min.insync.replicas is \(needed), and there are \(copies) copies: nothing can be written",
                    do: "set it to \(max(1, copies - 1)): kafka-configs --alter --topic \(topic.name)")
            ]
        }
        // Where there is one broker, there is nowhere to put another copy.
        if copies == 1, facts.metadata.brokers.count > 1 {
            return [
                .warning(
                    check, "one copy: what a broker has is away while the broker is",
                    do: "give it three with kafka-reassign-partitions, and new ones by topics apply --replication 3")
            ]
        }
        guard copies > 1, let needed else { return [] }
        // Of two copies, one being enough is what lets the other be away.
        if needed == 1, copies > 2 {
            return [
                .warning(
                    check, "min.insync.replicas is 1: one broker's word is enough for what is written",
                    do: "set it to \(copies - 1): kafka-configs --alter --topic \(topic.name)")
            ]
        }
        guard needed == copies else { return [] }
        return [
            .warning(
                check, "min.insync.replicas is all \(copies) copies: a broker that is away stops all writing",
                do: "set it to \(copies - 1): kafka-configs --alter --topic \(topic.name)")
        ]
    }

    private static func settings(_ check: String, _ topic: Topic, _ facts: BrokerFacts) -> [DoctorFinding] {
        if case .failure(let error)? = facts.topicSettings?[topic.name] {
            return [
                .warning(
                    check, "its settings are not told: \(error.message)",
                    do: "grant this client DescribeConfigs on the topic")
            ]
        }
        let settings = settings(of: topic, facts)
        let alter = "kafka-configs --alter --topic \(topic.name) --add-config"
        var problems: [DoctorFinding] = []
        if let policy = settings["cleanup.policy"], policy.contains("compact") {
            problems.append(
                .failure(
                    check, "cleanup.policy is \(policy): readers take removed messages for lost ones",
                    do: "\(alter) cleanup.policy=delete"))
        }
        let retention = topic.retention.milliseconds
        if let kept = settings["retention.ms"].flatMap({ Int64($0) }), kept >= 0, kept < retention {
            problems.append(
                .warning(
                    check,
                    "keeps messages for \(Duration.milliseconds(kept).settingText), less than "
                        + "\(topic.retention.settingText)", do: "\(alter) retention.ms=\(retention)"))
        }
        if let bytes = settings["max.message.bytes"].flatMap({ Int($0) }), bytes < messageBytesMin {
            problems.append(
                .failure(
                    check, "max.message.bytes is \(bytes): large objects are not published",
                    do: "\(alter) max.message.bytes=1048588"))
        }
        return problems
    }

    static func settings(of topic: Topic, _ facts: BrokerFacts) -> [String: String] {
        (try? facts.topicSettings?[topic.name]?.get()) ?? [:]
    }

    private static func seen(_ topic: Topic, _ facts: BrokerFacts) -> String {
        let found = facts.metadata.topics[topic.name] ?? 0
        let more = Int(found) > topic.partitions ? ", \(topic.partitions) are declared" : ""
        let copies = facts.metadata.replicas[topic.name].map { ", \($0) \($0 == 1 ? "copy" : "copies")" } ?? ""
        let told = facts.topicSettings == nil ? "; the broker does not tell its settings" : ""
        return "\(found) partitions\(more)\(copies)\(told)"
    }
}
