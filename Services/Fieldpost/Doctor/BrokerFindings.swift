import Kafka
import Model

/// What brokers' word of themselves and of consumer groups means for Fieldpost.
enum BrokerFindings {
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
            name, "true: who asks for a topic makes it, with partitions and settings of no catalogue",
            do: "set auto.create.topics.enable=false on all brokers; fieldpost topics apply makes what is needed")
    }

    private static func groups(_ facts: BrokerFacts) -> [DoctorFinding] {
        let names = Services.all.filter { !$0.topics.isEmpty }.map(\.name)
        let refused: [DoctorFinding] = names.compactMap { name in
            (facts.refusedGroups[name] ?? facts.groups?[name]?.failure).map { error in
                .failure(
                    "Kafka: group \(name)", error.message,
                    do: error.advice ?? "see why its coordinator does not answer, and ask again")
            }
        }
        let asked = names.filter { facts.refusedGroups[$0] == nil && facts.groups?[$0]?.failure == nil }
        if facts.groups == nil {
            return refused + [.good("Kafka: groups", "offsets of \(asked.count) are told; their members are not")]
        }
        let unknown = asked.filter { facts.memberCount($0) == nil }
        let idle = asked.filter { facts.memberCount($0) == 0 }
        var others = unknown.map { DoctorFinding.good("Kafka: group \($0)", facts.memberText($0)) }
        let busyCount = asked.count - idle.count - unknown.count
        if idle.isEmpty, busyCount > 0 { others.append(.good("Kafka: groups", "each of \(busyCount) has workers")) }
        return refused + others
            + idle.map { name in
                .warning("Kafka: group \(name)", "has no workers", do: "start \(name), or see why it does not run")
            }
    }
}
