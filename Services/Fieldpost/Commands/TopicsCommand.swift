import ArgumentParser
import CommandLineSupport
import Essentials
import Kafka
import KeyedWorker
import Model
import ServiceRuntime
import ServiceSettings

/// `fieldpost topics`: the catalogue of topics and what the broker has of it.
struct TopicsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics", abstract: "The catalogue of topics, and what the broker has of it.",
        subcommands: [List.self, Describe.self, Check.self, Apply.self, Scale.self, Republish.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Compare the catalogue with the broker.")
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let admin = try brokers.admin()
            do {
                try show(TopicRow.all(found: try admin.metadata().topics), output)
            } catch let error as KafkaError {
                try show(TopicRow.all(found: nil), output)
                throw CommandFailure(error)
            }
        }
    }

    struct Apply: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create the topics that the broker does not have.")
        @Option(help: "Copies of each partition; without it, the broker's default.") var replication: Int32?
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard replication.map({ $0 > 0 }) ?? true else { throw ValidationError("--replication must be positive") }
        }

        func run() throws {
            let admin = try brokers.admin()
            let before = try admin.metadata().topics
            let missing = Topics.all.filter { before[$0.name] == nil }
            if !missing.isEmpty { try create(missing, admin) }
            let created = Set(missing.map(\.name))
            // What was created counts with its partitions although the broker may tell of it only later.
            let found = before.merging(missing.map { ($0.name, Int32($0.partitions)) }) { old, _ in old }
            let rows = TopicRow.all(found: found, created: created)
            try show(rows, output)
            if let wrong = rows.first(where: { $0.foundPartitions ?? 0 < $0.partitions }) {
                throw CommandFailure(
                    "\(wrong.topic) has \(wrong.foundPartitions ?? 0) partitions, not \(wrong.partitions): "
                        + "run fieldpost topics scale \(wrong.topic) --partitions \(wrong.partitions)")
            }
        }

        private func create(_ topics: [Topic], _ admin: borrowing Admin) throws {
            let wanted = topics.map { topic in
                var configuration = [
                    "retention.ms": String(topic.retention.milliseconds), "cleanup.policy": "delete",
                ]
                // One copy may be away, and what is written is on two.
                if let replication, replication > 2 {
                    configuration["min.insync.replicas"] = String(replication - 1)
                }
                return NewTopic(
                    name: topic.name, partitions: Int32(topic.partitions), replication: replication ?? -1,
                    configuration: configuration)
            }
            for (name, creation) in try admin.createTopics(wanted).sorted(by: { $0.key < $1.key }) {
                if case .failed(let error) = creation { throw CommandFailure("\(name) was not created: \(error)") }
            }
        }
    }
}

private struct TopicRow: Encodable {
    let topic: String
    let kinds: [String]
    /// By kind, the realms whose objects are published.
    let realms: [String: [String]]
    let key: String
    let partitions: Int
    let foundPartitions: Int?
    let retentionMs: Int64
    let consumers: [String]
    let state: String

    /// - Parameter found: Topic → partitions, as the broker tells; `nil` when it does not.
    static func all(found: [String: Int32]?, created: Set<String> = []) -> [TopicRow] {
        Topics.all.map { topic in
            let count = found?[topic.name].map(Int.init)
            let state =
                if found == nil {
                    "unknown"
                } else if created.contains(topic.name) {
                    "created"
                } else if let count {
                    count < topic.partitions ? "too few partitions" : count == topic.partitions ? "there" : "scaled"
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
    var table = Table(
        [
            ("TOPIC", .left), ("KINDS (IN REALMS)", .left), ("KEY", .left), ("PARTITIONS", .right), ("FOUND", .right),
            ("RETENTION", .right), ("CONSUMERS", .left), ("STATE", .left),
        ], empty: "the catalogue is empty")
    for row in rows {
        let kinds = row.kinds.map { "\($0) (\(row.realms[$0, default: []].joined(separator: ", ")))" }
        table.add([
            row.topic, kinds.joined(separator: ", "), row.key, String(row.partitions),
            row.foundPartitions.map(String.init) ?? "-", Duration.milliseconds(row.retentionMs).settingText,
            row.consumers.joined(separator: ", "), row.state,
        ])
    }
    try output.show(rows, table)
}
