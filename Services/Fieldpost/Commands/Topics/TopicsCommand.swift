import ArgumentParser
import CommandLineSupport
import Essentials
import Kafka
import KeyedWorker
import Model
import ServiceRuntime
import ServiceSettings

/// `fieldpost topics`: the catalogue of topics and their state at the broker.
struct TopicsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics", abstract: "Manage the Kafka topics of the catalogue.",
        subcommands: [List.self, Describe.self, Check.self, Apply.self, Scale.self, Republish.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the catalogue's topics and their state at the broker.")
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let admin = try brokers.admin()
            do {
                try show(TopicRow.all(existing: try admin.metadata().topics), output)
            } catch let error as KafkaError {
                try show(TopicRow.all(existing: nil), output)
                throw CommandFailure(error)
            }
        }
    }

    struct Apply: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create missing topics.")
        @Option(help: "Replication factor. (default: the broker's)") var replication: Int32?
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard replication.map({ $0 > 0 }) ?? true else { throw ValidationError("--replication must be at least 1") }
        }

        func run() throws {
            let admin = try brokers.admin()
            let before = try admin.metadata().topics
            let missing = Topics.all.filter { before[$0.name] == nil }
            if !missing.isEmpty { try create(missing, admin) }
            let created = Set(missing.map(\.name))
            // Created topics count with their partitions, although the broker may report them later.
            let existing = before.merging(missing.map { ($0.name, Int32($0.partitions)) }) { old, _ in old }
            let rows = TopicRow.all(existing: existing, created: created)
            try show(rows, output)
            if let wrong = rows.first(where: { $0.foundPartitions ?? 0 < $0.partitions }) {
                throw CommandFailure(
                    "\(wrong.topic) has \(wrong.foundPartitions ?? 0) partitions, not \(wrong.partitions): "
                        + "run fieldpost topics scale \(wrong.topic) --partitions \(wrong.partitions)")
            }
        }

        private func create(_ topics: [Topic], _ admin: borrowing Admin) throws {
            let newTopics = topics.map { topic in
                var configuration = [
                    "retention.ms": String(topic.retention.milliseconds), "cleanup.policy": "delete",
                ]
                // One replica may be unavailable, and each write is on two.
                if let replication, replication > 2 {
                    configuration["min.insync.replicas"] = String(replication - 1)
                }
                return NewTopic(
                    name: topic.name, partitions: Int32(topic.partitions), replication: replication ?? -1,
                    configuration: configuration)
            }
            for (name, creation) in try admin.createTopics(newTopics).sorted(by: { $0.key < $1.key }) {
                if case .failed(let error) = creation { throw CommandFailure("\(name) was not created: \(error)") }
            }
        }
    }
}

private struct TopicRow: Encodable {
    let topic: String
    let kinds: [String]
    /// The realms whose objects are published, by kind.
    let realms: [String: [String]]
    let key: String
    let partitions: Int
    let foundPartitions: Int?
    let retentionMs: Int64
    let consumers: [String]
    let state: String

    /// - Parameter existing: The number of partitions by topic, as the broker reports them; `nil` if it is unavailable.
    static func all(existing: [String: Int32]?, created: Set<String> = []) -> [TopicRow] {
        Topics.all.map { topic in
            let count = existing?[topic.name].map(Int.init)
            let state =
                if existing == nil {
                    "unknown"
                } else if created.contains(topic.name) {
                    "created"
                } else if let count {
                    count < topic.partitions ? "too few partitions" : count == topic.partitions ? "ok" : "scaled"
                } else {
                    "missing"
                }
            let key =
                switch topic.key {
                case .objectID: "object id"
                }
            return TopicRow(
                topic: topic.name, kinds: topic.kinds.map(\.rawValue),
                realms: Dictionary(uniqueKeysWithValues: topic.sources.map { ($0.kind.rawValue, $0.realms) }), key: key,
                partitions: topic.partitions, foundPartitions: count, retentionMs: topic.retention.milliseconds,
                consumers: topic.consumers, state: state)
        }
    }
}

private func show(_ rows: [TopicRow], _ output: OutputOptions) throws {
    let table = Table(
        [
            "TOPIC", "KINDS (IN REALMS)", "KEY", .right("PARTITIONS"), .right("FOUND"), .right("RETENTION"),
            "CONSUMERS", "STATE",
        ], rows, empty: "the catalogue is empty"
    ) { row in
        let kinds = row.kinds.map { "\($0) (\(row.realms[$0, default: []].joined(separator: ", ")))" }
        return [
            row.topic, kinds.joined(separator: ", "), row.key, String(row.partitions),
            row.foundPartitions.map(String.init) ?? "-", Duration.milliseconds(row.retentionMs).settingText,
            row.consumers.joined(separator: ", "), row.state,
        ]
    }
    try output.show(rows, table)
}
