import AdminQueries
import ArgumentParser
import CommandLineSupport
import Essentials
import FoundationEssentials
import Model
import Tenants

/// `fieldpost trace`: the life of one object.
struct TraceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace", abstract: "The life of one entry, task, share, command or notice, hop by hop.",
        discussion: """
            What PostgreSQL keeps of it (its changes, the device's mutations, its status log, each attempt at a back \
            end, parked keys, deliveries, the audit log) and what Kafka still has of it, in the order in which it \
            happened. What cannot be told is said at the end, with the reason. Nothing is changed.
            """)
    @Argument(help: "The object's id, or its key as `parked list` shows it.") var id: String
    @Option(help: "Only in this environment.") var environment: String?
    @Flag(help: "Do not ask Kafka.") var noKafka = false
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var brokers: BrokerOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if object == nil { throw ValidationError("\(id) is no UUID, and does not end with one") }
    }

    private var object: UUID? { id.split(separator: "/").last.flatMap { UUID(ascii: $0) } }

    func run() throws {
        guard let uuid = object else { return }
        var connection = try database.connect()
        let wanted = try environment.map { try EnvironmentStore.find($0, on: &connection) }
        var stories = try Story.load(uuid, in: wanted, on: &connection)
        guard !stories.isEmpty else {
            throw CommandFailure("there is no object \(id), and never was one whose tombstone is still kept")
        }
        if !noKafka { stories = try stories.map { try TransportStory(brokers).told($0) } }
        if output.json { return try printJSON(stories) }
        for (index, story) in stories.enumerated() {
            if index > 0 { print("") }
            print("\(story.subject) in \(story.environment)")
            print(Self.table(story).text, terminator: "")
            for gap in story.gaps { print("not known: \(gap)") }
        }
    }

    private static func table(_ story: Story) -> Table {
        var table = Table(
            [
                ("TIME", .left), ("SERVICE", .left), ("EVENT", .left), ("POSITION", .right), ("PLACE", .left),
                ("ATTEMPT", .right), ("WHAT", .left),
            ], empty: "nothing is known of it")
        for hop in story.hops {
            let place = hop.topic.map { topic in
                topic + (hop.partition.map { "/\($0)" } ?? "") + (hop.offset.map { "@\($0)" } ?? "")
            }
            table.add([
                hop.at.map { "\($0)" } ?? "-", hop.service, hop.event, hop.position.map(String.init) ?? "-",
                place ?? "-", hop.attempt.map(String.init) ?? "-", hop.text,
            ])
        }
        return table
    }
}
