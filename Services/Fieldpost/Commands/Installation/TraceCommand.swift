import AdminQueries
import ArgumentParser
import CommandLineSupport
import Essentials
import FoundationEssentials
import Kafka
import Model
import Tenants

/// `fieldpost trace`: prints the history of one object.
struct TraceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace", abstract: "Trace one object through all services, hop by hop.",
        discussion: """
            Prints in time order what PostgreSQL has stored of an entry, task, share, command or notice (changes, \
            mutations of devices, status log, attempts at a back end, deferred keys, deliveries, audit log), and its \
            messages that Kafka still has. Gaps are listed at the end, with the reason. Changes nothing.
            """)
    @Argument(help: "The object's id, or its key as `deferred list` shows it.", completion: Completion.keys)
    var id: String
    @Option(help: "Limit to this environment.", completion: Completion.environments) var environment: String?
    @Flag(help: "Skip Kafka.") var noKafka = false
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var brokers: BrokerOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if object == nil { throw ValidationError("\(id) is neither a UUID nor a key that ends with one") }
    }

    private var object: UUID? { id.split(separator: "/").last.flatMap { UUID(ascii: $0) } }

    func run() throws {
        guard let uuid = object else { return }
        var connection = try database.connect()
        let selected = try environment.map { try EnvironmentStore.find($0, on: &connection) }
        var traces = try ObjectTrace.load(uuid, in: selected, on: &connection)
        guard !traces.isEmpty else {
            throw CommandFailure("no object or tombstone has the id \(id)")
        }
        if !noKafka {
            let own = try OwnTopic.all(database)
            for index in traces.indices { try KafkaTrace(brokers, own).add(to: &traces[index]) }
        }
        if output.json { return try printJSON(traces) }
        for (index, trace) in traces.enumerated() {
            if index > 0 { print("") }
            print("\(trace.subject) in \(trace.environment)")
            print(Self.table(trace).text, terminator: "")
            for gap in trace.gaps { print("gap: \(gap)") }
        }
    }

    private static func table(_ trace: ObjectTrace) -> Table {
        Table(
            ["TIME", "SERVICE", "EVENT", .right("POSITION"), "LOCATION", .right("ATTEMPT"), "DETAIL"], trace.hops,
            empty: "no events are stored"
        ) { hop in
            let location = hop.topic.map { topic in
                topic + (hop.partition.map { "/\($0)" } ?? "") + (hop.offset.map { "@\($0)" } ?? "")
            }
            return [
                hop.at.map { "\($0)" } ?? "-", hop.service, hop.event, hop.position.map(String.init) ?? "-",
                location ?? "-", hop.attempt.map(String.init) ?? "-", hop.text,
            ]
        }
    }
}

/// Adds the messages that Kafka still has to an object's trace.
struct KafkaTrace {
    /// Maximum number of messages that are scanned: the newest of the partition.
    static let messagesMax: Int64 = 200_000
    private static let waitMax = Duration.seconds(10)

    private let brokers: String
    private let properties: [String: String]
    private let own: [OwnTopic]

    /// - Parameter own: The topics of kinds that environments declare.
    init(_ options: BrokerOptions, _ own: [OwnTopic]) throws {
        (brokers, properties) = try options.resolved()
        self.own = own
    }

    /// Adds Kafka's messages to a trace. An unavailable broker becomes a gap of the trace.
    func add(to trace: inout ObjectTrace) throws {
        guard let subject = EventSubject(trace.subject),
            let topic = subject.kind.row.route?.topic
                ?? own.first(where: { $0.isOf(subject.kind, in: trace.environment) })?.topic
        else {
            return trace.gaps.append("its kind is not published to Kafka")
        }
        do throws(KafkaError) {
            let admin = try Admin(brokers: brokers, properties: properties, waitMax: BrokerOptions.waitMax)
            guard let count = try admin.metadata().topics[topic.name] else { throw KafkaError(missing: [topic.name]) }
            let key = Array(subject.id.text.utf8)
            let number = TopicPartition.partition(ofKey: key, count: count)
            let partition = TopicPartition(topic: topic.name, partition: number)
            let scan = try KeyScan.run(
                key, in: partition, brokers: brokers, properties: properties, countMax: Self.messagesMax,
                waitMax: Self.waitMax)
            let messages = scan.messages.filter { $0.headers["ce_subject"] == trace.subject }
            trace.hops += messages.map { hop($0, partition) }
            if scan.scanned.upperBound < scan.available.upperBound {
                trace.gaps.append(
                    "\(partition): the messages from offset \(scan.scanned.upperBound) on were not read in time")
            }
            if scan.scanned.lowerBound > 0 {
                trace.gaps.append(
                    "\(partition): messages before offset \(scan.scanned.lowerBound) were removed or not scanned")
            }
            for group in topic.consumers {
                guard let last = scan.messages.last else { break }
                let committed = try admin.committed([group: [partition]])[group]?.get()[partition]
                trace.hops.append(finished(group, committed, last.offset, partition))
            }
        } catch {
            trace.gaps.append("Kafka is unavailable: \(error)")
        }
        trace.sort()
    }

    private func hop(_ message: KeyScanMessage, _ partition: TopicPartition) -> ObjectTrace.Hop {
        ObjectTrace.Hop(
            at: message.milliseconds < 0 ? nil : Timestamp(millisecondsSinceEpoch: message.milliseconds),
            service: "change-relay", event: "published",
            text: message.isTombstone ? "published as deleted" : "published",
            position: message.headers["fieldpost-position"].flatMap { Int64($0) }, topic: partition.topic,
            partition: partition.partition, offset: message.offset, traceparent: message.headers["traceparent"])
    }

    private func finished(
        _ group: String, _ committed: Int64?, _ offset: Int64, _ partition: TopicPartition
    ) -> ObjectTrace.Hop {
        let isFinished = committed.map { $0 > offset } ?? false
        return ObjectTrace.Hop(
            at: nil, service: group, event: isFinished ? "finished" : "unfinished",
            text: isFinished
                ? "the group has committed all of its messages"
                : "the group has not committed its last message; its offset is "
                    + "\(committed.map(String.init) ?? "unset")",
            topic: partition.topic, partition: partition.partition, offset: committed)
    }
}
