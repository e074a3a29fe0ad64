import ArgumentParser
import Audit
import CommandLineSupport
import Essentials
import Kafka
import KeyedWorker
import Model
import Postgres
import ServiceSettings

/// `fieldpost topics`: the catalogue of topics and their state at the broker.
struct TopicsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics", abstract: "Manage the Kafka topics of the catalogue.",
        subcommands: [List.self, Describe.self, Check.self, Apply.self, Scale.self, Republish.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the catalogue's topics and their state at the broker.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let admin = try brokers.admin()
            let own = try OwnTopic.all(database)
            do {
                try show(TopicRow.all(own, existing: try admin.metadata().topics), output)
            } catch let error as KafkaError {
                try show(TopicRow.all(own, existing: nil), output)
                throw CommandFailure(error)
            }
        }
    }

    struct Apply: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create missing topics.",
            discussion: """
                Without a database, topics of kinds that environments declare are not created or listed.
                """)
        @Option(help: "Replication factor. (default: the broker's)") var replication: Int32?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard replication.map({ $0 > 0 }) ?? true else { throw ValidationError("--replication must be at least 1") }
        }

        func run() throws {
            let admin = try brokers.admin()
            let before = try admin.metadata().topics
            let own = try OwnTopic.all(database)
            let missing = (Topics.all + own.map(\.topic)).filter { before[$0.name] == nil }
            if !missing.isEmpty { try create(missing, admin) }
            let created = Set(missing.map(\.name))
            // Created topics count with their partitions, although the broker may report them later.
            let existing = before.merging(missing.map { ($0.name, Int32($0.partitions)) }) { old, _ in old }
            let rows = TopicRow.all(own, existing: existing, created: created)
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

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check the broker's topics against the catalogue.",
            discussion: """
                Checks partitions, leaders, replicas, retention and the maximum message size, and prints the action \
                for each finding. Exits with status 1 if a topic deviates from the catalogue. Without a database, \
                topics of kinds that environments declare are not checked.
                """)
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let topics = Topics.all + (try OwnTopic.all(database).map(\.topic))
            let findings = TopicFindings.findings(topics, try brokers.facts(topics))
            let table = Table(["STATE", "TOPIC", "FINDING", "ACTION"], findings) { finding in
                let topic = finding.check.split(separator: " ").last.map(String.init) ?? ""
                return [finding.state.rawValue, topic, finding.seen, finding.remedy ?? "-"]
            }
            try output.show(findings, table)
            if findings.contains(where: { $0.state != .good }) { throw ExitCode(1) }
        }
    }

    struct Republish: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Republish all objects of one topic or of all topics.",
            discussion: """
                For consumers that lost messages, and for kinds that were added to a topic after objects were written. \
                change-relay republishes alongside new changes; consumers skip objects that they have already \
                processed.
                """)
        @Argument(help: "Limit to this topic.", completion: Completion.topics) var topic: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            if let topic { _ = try Topic.named(topic) }
        }

        func run() throws {
            var connection = try database.connect()
            let catalogue = Topics.all.map(\.name).filter { topic == nil || topic == $0 }
            let own = try OwnTopic.all(on: &connection).map(\.topic.name).filter { topic == nil || topic == $0 }
            let topics = catalogue + own
            if let topic, topics.isEmpty { throw CommandFailure("no environment declares the topic \(topic)") }
            var statements = catalogue.map { KeyedWorker.Republish.request($0) }
            if !own.isEmpty { statements.append(KeyedWorker.Republish.request(own: own)) }
            statements += topics.map { Administrator.commandLine.audit(.topicRepublished, $0, in: nil) }
            let results = try connection.run(statements)
            let count = results.first?.affectedCount ?? 0
            if output.json { return try printJSON(["topics": topics.count, "environments": count]) }
            print(
                "\(topics.joined(separator: ", ")): change-relay republishes it in \(count) "
                    + (count == 1 ? "environment" : "environments"))
        }
    }

    struct Scale: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Increase the number of partitions of a topic.",
            discussion: """
                More workers can then share the topic. Services keep running. Most keys move to other partitions, so \
                for a short time two workers may process the same key: each loads its current state, and writes \
                conditionally (docs/integrators/topics.md). Services detect the new partitions within seconds, \
                change-relay within five minutes. Kafka cannot remove partitions.
                """)
        @Argument(help: "Topic to scale.", completion: Completion.topics) var name: String
        @Option(help: "New number of partitions.") var partitions: Int32
        @Flag(help: "Print the effect without changing the topic.") var dryRun = false
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        private static let countMax: Int32 = 1_000

        func validate() throws {
            let topic = try Topic.named(name)
            guard Int(partitions) >= topic.partitions else {
                throw ValidationError(
                    "--partitions must be at least \(topic.partitions), the declared number of \(name), not "
                        + "\(partitions)")
            }
            guard partitions <= Self.countMax else {
                throw ValidationError("--partitions must be at most \(Self.countMax), not \(partitions)")
            }
        }

        func run() throws {
            let admin = try brokers.admin()
            do {
                let metadata = try admin.metadata()
                let current = try Self.partitions(of: name, in: metadata, atLeast: partitions)
                if current < partitions, !dryRun { try admin.setPartitions(of: name, to: partitions) }
                try show(Scaling(topic: name, before: current, after: partitions, isDone: !dryRun))
            } catch let error as KafkaError {
                throw CommandFailure(error)
            }
        }

        /// - Throws: `CommandFailure` if the topic does not exist or has more partitions.
        private static func partitions(
            of name: String, in metadata: ClusterMetadata, atLeast count: Int32
        ) throws -> Int32 {
            guard let current = metadata.topics[name] else {
                throw CommandFailure("topic \(name) does not exist at the broker: run fieldpost topics apply")
            }
            guard current <= count else {
                throw CommandFailure(
                    "\(name) has \(current) partitions, and Kafka cannot remove any. To have \(count): stop "
                        + "change-relay, wait until fieldpost lag --topic \(name) is 0, stop the topic's services, "
                        + "delete and recreate the topic, and run fieldpost topics republish \(name)")
            }
            return current
        }

        private func show(_ scaling: Scaling) throws {
            if output.json { return try printJSON(scaling) }
            let (before, after) = (scaling.before, scaling.after)
            if before == after { return print("\(name) has \(after) partitions already") }
            print("\(name): \(before) partitions \(dryRun ? "would become" : "became") \(after)")
            let moved = ScaleRule.percentMoved(from: before, to: after)
            print("up to \(after) workers can share it; about \(moved) % of the keys change their partition")
            if dryRun { print("nothing was changed") }
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

    /// - Parameters:
    ///   - own: The topics of kinds that environments declare.
    ///   - existing: The number of partitions by topic, as the broker reports them; `nil` if it is unavailable.
    static func all(_ own: [OwnTopic], existing: [String: Int32]?, created: Set<String> = []) -> [TopicRow] {
        let catalogue = Topics.all.map { topic in
            let realms = topic.sources.map { ($0.kind.rawValue, $0.realms) }
            return (topic, topic.kinds.map(\.rawValue), Dictionary(uniqueKeysWithValues: realms))
        }
        let others = own.map { ($0.topic, [$0.kind], [$0.kind: ["all"]]) }
        return (catalogue + others).map { topic, kinds, realms in
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
                topic: topic.name, kinds: kinds, realms: realms, key: key, partitions: topic.partitions,
                foundPartitions: count, retentionMs: topic.retention.milliseconds, consumers: topic.consumers,
                state: state)
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

extension BrokerOptions {
    /// Queries the brokers about themselves and about `topics`.
    ///
    /// - Throws: `CommandFailure` if no broker responds.
    func facts(_ topics: [Topic]) throws -> BrokerFacts {
        let admin = try admin()
        do {
            return try BrokerFacts.load(admin, topics)
        } catch {
            throw CommandFailure(error)
        }
    }
}

private struct Scaling: Encodable {
    let topic: String
    let before: Int32
    let after: Int32
    /// Whether the topic was changed.
    let isDone: Bool
}
