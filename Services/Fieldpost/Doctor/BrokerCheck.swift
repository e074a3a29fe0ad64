import Kafka
import Model

/// Checks that Kafka is usable and has the topics of the catalogue and of own kinds.
struct BrokerCheck: DoctorCheck {
    let options: BrokerOptions
    let database: DatabaseOptions

    func findings() async -> [DoctorFinding] {
        do {
            let admin = try options.admin()
            // The check of the database reports its errors.
            let topics = Topics.all + ((try? OwnTopic.all(database)) ?? []).map(\.topic)
            let facts = try BrokerFacts.load(admin, topics)
            return Self.findings(facts) + TopicFindings.findings(topics, facts)
        } catch let error as KafkaError {
            return [
                .failure(
                    "Kafka: brokers", "\(error.name): \(error.message)",
                    do: error.advice ?? "check that the brokers run, and check FIELDPOST_KAFKA_BROKERS or --brokers")
            ]
        } catch {
            // The settings check reports the details.
            return [.failure("Kafka: brokers", "\(error)", do: "correct the setting and run the check again")]
        }
    }

    // MARK: Findings

    static func findings(_ facts: BrokerFacts) -> [DoctorFinding] {
        [brokers(facts), creation(facts)].compactMap(\.self) + groups(facts)
    }

    private static func brokers(_ facts: BrokerFacts) -> DoctorFinding {
        let brokers = facts.metadata.brokers.map { "\($0.host):\($0.port)" }.sorted()
        let version = facts.brokerSettings?["inter.broker.protocol.version"].map { ", protocol \($0)" } ?? ""
        return .good("Kafka: brokers", "\(brokers.joined(separator: ", "))\(version)")
    }

    private static func creation(_ facts: BrokerFacts) -> DoctorFinding? {
        let name = "Kafka: auto.create.topics.enable"
        guard let value = facts.brokerSettings?["auto.create.topics.enable"] else { return nil }
        guard value == "true" else { return .good(name, value) }
        return .warning(
            name, "true: a client that requests a topic creates it with default partitions and settings",
            do: "set auto.create.topics.enable=false on all brokers, and create topics with fieldpost topics apply")
    }

    private static func groups(_ facts: BrokerFacts) -> [DoctorFinding] {
        let names = Services.all.filter { !$0.topics.isEmpty }.map(\.name)
        let refused: [DoctorFinding] = names.compactMap { name in
            (facts.refusedGroups[name] ?? facts.groups?[name]?.failure).map { error in
                .failure(
                    "Kafka: group \(name)", error.message,
                    do: error.advice ?? "check its coordinator, and run the check again")
            }
        }
        let described = names.filter { facts.refusedGroups[$0] == nil && facts.groups?[$0]?.failure == nil }
        if facts.groups == nil {
            return refused + [
                .good("Kafka: groups", "offsets of \(described.count) groups are available; their members are not")
            ]
        }
        let unknown = described.filter { facts.memberCount($0) == nil }
        let idle = described.filter { facts.memberCount($0) == 0 }
        var others = unknown.map { DoctorFinding.good("Kafka: group \($0)", facts.memberText($0)) }
        let busyCount = described.count - idle.count - unknown.count
        if idle.isEmpty, busyCount > 0 { others.append(.good("Kafka: groups", "all \(busyCount) groups have members")) }
        return refused + others
            + idle.map { name in
                .warning("Kafka: group \(name)", "has no members", do: "start \(name), or check why it does not run")
            }
    }
}
