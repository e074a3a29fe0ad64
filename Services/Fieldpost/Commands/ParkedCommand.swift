import AdminQueries
import ArgumentParser
import CommandLineSupport
import Model
import Postgres
import Tenants

/// `fieldpost parked`: keys whose event could not be handled, for the person they wait for.
struct ParkedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "parked", abstract: "Keys whose event could not be handled.",
        discussion: """
            A key is one object, such as /users/ana@example.com/TimeEntry/8c1f…. A service that cannot handle its \
            newest change now parks it and goes on with others. It is `waiting` (tried again by itself, with \
            growing waits: after \(ParkedExplanation.attemptsUsual) attempts, about 15 minutes, it is dead, and at \
            once where no attempt could help), `circuit` \
            (its back end is away, and it comes back with it) or `dead`: it waits for you. Find dead ones with \
            `fieldpost parked list --dead`, see with `fieldpost parked show KEY` why and what to do, mend the cause, \
            then `fieldpost parked retry KEY`, which tells what came of it; or `fieldpost parked discard KEY`, which \
            leaves the object as it is. A newer change of the object ends it as well.
            """,
        subcommands: [List.self, Show.self, Retry.self, Discard.self, Export.self])

    /// Which keys are meant.
    struct Selection: ParsableArguments {
        @Argument(help: "Keys, as `parked list` shows them, or ids of their objects.") var keys: [String] = []
        @Option(help: "Only those of this consumer group: the service that parked them.") var group: String?
        @Option(help: "Only those of this topic.") var topic: String?
        @Option(help: "Only those of this environment.") var environment: String?
        @Option(help: "Only those whose reason contains this text, in large or small letters.") var reason: String?
        @Flag(help: "Only those that wait for a person.") var dead = false

        func validate() throws {
            if let topic { _ = try Topic.named(topic) }
            let groups = Set(Topics.all.flatMap(\.consumers))
            guard let group, !groups.contains(group) else { return }
            throw ValidationError(
                "there is no consumer group \(group); there are \(groups.sorted().joined(separator: ", "))")
        }

        /// Whether it says which.
        var isNarrowed: Bool {
            !keys.isEmpty || dead || [group, topic, environment, reason].contains { $0 != nil }
        }

        /// For a command that changes something: all of them must be asked for.
        func requireSome(all: Bool) throws {
            guard isNarrowed || all else {
                throw ValidationError("say which: keys, --group, --topic, --environment, --reason, --dead, or --all")
            }
        }

        /// - Throws: `EnvironmentFailure` when there is no such environment.
        func select(on connection: inout Connection) throws -> ParkedStore.Selection {
            ParkedStore.Selection(
                keys: keys, group: group, topic: topic,
                environment: try environment.map { try EnvironmentStore.find($0, on: &connection).rawValue },
                reason: reason, isDead: dead ? true : nil)
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the keys whose event could not be handled, the oldest first.")
        @OptionGroup var selection: Selection
        @Option(help: "At most so many.") var limit = 1_000
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard (1...1_000_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 1000000") }
        }

        func run() throws {
            var connection = try database.connect()
            let rows = try ParkedStore.load(
                selection.select(on: &connection), countMax: limit, on: &connection)
            let empty = selection.keys.isEmpty ? "nothing is parked" : "no such key is parked; a key ends with an id"
            try output.show(rows, ParkedStore.table(rows, empty: empty))
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show why keys are parked, what is known of them, and what to do.")
        @OptionGroup var selection: Selection
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard selection.isNarrowed else {
                throw ValidationError("say which: keys, --group, --topic, --environment, --reason or --dead")
            }
        }

        func run() throws {
            var connection = try database.connect()
            let rows = try ParkedStore.load(selection.select(on: &connection), countMax: 1_000, on: &connection)
            guard !rows.isEmpty else {
                throw CommandFailure(
                    selection.keys.isEmpty
                        ? "no key is parked that fits"
                        : "no such key is parked: it was handled or discarded, or never was")
            }
            if output.json { return try printJSON(rows) }
            let objects = try ParkedStore.objects(rows, on: &connection)
            for (row, object) in zip(rows, objects) {
                for (name, value) in ParkedExplanation(row, object).lines {
                    print("\(name.padding(to: 12))\(Table.oneLine(value))")
                }
                print()
            }
        }
    }

    /// The whole of each key, one a line, for programs and for reports.
    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the whole of parked keys, each as a line of JSON with its object.",
            discussion: """
                In the order of group, environment and key, page by page: any number of them may be there. `object` is \
                the object as it is now; it is left out where there is none. It may hold personal data.
                """)
        @OptionGroup var selection: Selection
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect()
            try ParkedStore.forEachPage(selection.select(on: &connection), on: &connection) { rows, connection in
                for (row, object) in zip(rows, try ParkedStore.objects(rows, on: &connection)) {
                    print(try ParkedLine.text(row, object))
                }
            }
        }
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
