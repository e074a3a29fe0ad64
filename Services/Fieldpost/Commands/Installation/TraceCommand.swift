import AdminQueries
import ArgumentParser
import CommandLineSupport
import Essentials
import FoundationEssentials
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
    @Argument(help: "The object's id, or its key as `deferred list` shows it.") var id: String
    @Option(help: "Limit to this environment.") var environment: String?
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
        if !noKafka { traces = try traces.map { try KafkaTrace(brokers).added(to: $0) } }
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
