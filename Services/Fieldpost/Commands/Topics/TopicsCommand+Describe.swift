import ArgumentParser
import CommandLineSupport
import Essentials
import Kafka
import LagMonitoring
import Model
import ServiceSettings

extension TopicsCommand {
    struct Describe: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the partitions, groups and settings of a topic.",
            discussion: """
                A topic of own kinds, own.{environment}.{topic}, is shown with all groups that committed offsets on it.
                """)
        @Argument(help: "Topic to show.", completion: Completion.topics) var name: String
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func validate() throws { _ = try Topic.named(name) }

        func run() throws {
            let topic = try Topic.named(name)
            let facts = try brokers.facts([topic])
            guard facts.metadata.topics[name] != nil else {
                let finding = TopicFindings.findings([topic], facts)[0]
                throw CommandFailure("\(name): \(finding.seen); \(finding.remedy ?? "")")
            }
            let description = TopicDescription(topic, facts, try lags(topic))
            if output.json { return try printJSON(description) }
            description.show()
        }

        private func lags(_ topic: Topic) throws -> LagHistory {
            let (addresses, properties) = try brokers.resolved()
            do throws(KafkaError) {
                let reader = try LagReader(brokers: addresses, properties: properties, waitMax: BrokerOptions.waitMax)
                let groups = topic.consumers.map { ($0, [topic.name]) }
                var history = LagHistory()
                let consumers = Dictionary(groups) { first, _ in first }
                history.take(try reader.snapshot(of: consumers, others: Topic.isOwn(topic.name)))
                return history
            } catch {
                throw CommandFailure(error)
            }
        }
    }
}

/// One topic, as the catalogue declares it and as the brokers have it.
struct TopicDescription: Encodable {
    struct Partition: Encodable {
        let partition: Int32
        let hasLeader: Bool
        /// `nil` if the broker did not report it.
        let end: Int64?
        /// The lag by group; a group without a known lag is absent.
        let lag: [String: Int64]
    }

    let topic: String
    let kinds: [String]
    let declaredPartitions: Int
    let declaredRetentionMs: Int64
    /// `nil` if the brokers do not report it.
    let copies: Int32?
    let partitions: [Partition]
    let groups: [String]
    /// Number of members by group; absent if the brokers do not report it.
    let members: [String: Int]
    /// The reason for each other group why its members are unknown.
    let membersUnknown: [String: String]
    /// The settings of retention and durability.
    let settings: [String: String]
    let findings: [DoctorFinding]

    private static let settingNames = [
        "cleanup.policy", "retention.ms", "retention.bytes", "segment.ms", "min.insync.replicas", "max.message.bytes",
    ]

    init(_ topic: Topic, _ facts: BrokerFacts, _ history: LagHistory) {
        self.topic = topic.name
        kinds = topic.kinds.map(\.rawValue)
        (declaredPartitions, declaredRetentionMs) = (topic.partitions, topic.retention.milliseconds)
        copies = facts.metadata.replicas[topic.name]
        let topicLags = history.lags.filter { $0.partition.topic == topic.name }
        // The groups that read a topic of own kinds are not in the catalogue.
        groups = topic.consumers.isEmpty ? Set(topicLags.map(\.group)).sorted() : topic.consumers
        let counts = groups.compactMap { group in facts.memberCount(group).map { (group, $0) } }
        members = Dictionary(uniqueKeysWithValues: counts)
        let unknown = groups.filter { facts.memberCount($0) == nil }
        membersUnknown = Dictionary(uniqueKeysWithValues: unknown.map { ($0, facts.memberText($0)) })
        settings = TopicFindings.settings(of: topic, facts).filter { Self.settingNames.contains($0.key) }
        findings = TopicFindings.findings([topic], facts)
        let lags = Dictionary(grouping: topicLags, by: \.partition)
        partitions = (0..<(facts.metadata.topics[topic.name] ?? 0)).map { number in
            let partition = TopicPartition(topic: topic.name, partition: number)
            let groupLags = lags[partition] ?? []
            return Partition(
                partition: number, hasLeader: !facts.metadata.leaderless.contains(partition),
                end: groupLags.first?.beginning.end,
                lag: Dictionary(groupLags.map { ($0.group, $0.count) }) { first, _ in first })
        }
    }

    func show() {
        let retention = Duration.milliseconds(declaredRetentionMs).settingText
        print(kinds.isEmpty ? topic : "\(topic): \(kinds.joined(separator: ", "))")
        print("declared: \(declaredPartitions) partitions, retention \(retention)")
        for name in settings.keys.sorted() { print("\(name) = \(settings[name] ?? "")") }
        for group in groups {
            let memberText = members[group].map { "\($0) members" } ?? membersUnknown[group] ?? ""
            let lags = partitions.compactMap { $0.lag[group] }
            let lag = lags.isEmpty ? "lag unknown" : "lag \(lags.reduce(0, +))"
            print("group \(group): \(memberText), \(lag)")
        }
        for finding in findings {
            print("\(finding.state.rawValue): \(finding.seen)\(finding.remedy.map { " — \($0)" } ?? "")")
        }
        let lagColumns = groups.map { Table.Column.right("LAG OF \($0.uppercased())") }
        let columns: [Table.Column] = [.right("PARTITION"), "LEADER", .right("END")] + lagColumns
        let table = Table(columns, partitions) { partition in
            let end = partition.end.map(String.init) ?? "unknown"
            let lags = groups.map { partition.lag[$0].map(String.init) ?? "unknown" }
            return [String(partition.partition), partition.hasLeader ? "yes" : "none", end] + lags
        }
        print(table.text, terminator: "")
    }
}
