import Algorithms
import ArgumentParser
import FoundationEssentials
import Glibc
import Model
import Postgres
import Realms
import Runtime

/// `fieldpost parked`: keys whose event could not be handled, for the person they wait for.
struct ParkedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "parked", abstract: "Keys whose event could not be handled.",
        subcommands: [List.self, Show.self, Retry.self, Discard.self])

    /// Which keys are meant.
    struct Selection: ParsableArguments {
        @Argument(help: "Keys, as `parked list` shows them.") var keys: [String] = []
        @Option(help: "Only those of this consumer group.") var group: String?
        @Option(help: "Only those of this environment.") var environment: String?

        /// For a command that changes something: all of them must be asked for.
        func requireSome(all: Bool) throws {
            guard !keys.isEmpty || group != nil || environment != nil || all else {
                throw ValidationError("say which: keys, --group, --environment, or --all")
            }
        }

        func select(isDead: Bool? = nil, countMax: Int = 100_000) -> ParkedStore.Selection {
            ParkedStore.Selection(
                keys: keys, group: group, environment: environment, isDead: isDead, countMax: countMax)
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the keys whose event could not be handled, the oldest first.")
        @OptionGroup var selection: Selection
        @Flag(help: "Only those that wait for a person.") var dead = false
        @Option(help: "At most so many.") var limit = 1_000
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard (1...1_000_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 1000000") }
        }

        func run() throws {
            var connection = try database.connect()
            let rows = try ParkedStore.load(
                selection.select(isDead: dead ? true : nil, countMax: limit), on: &connection)
            try output.show(rows, ParkedStore.table(rows))
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show all that is known of some parked keys.")
        @OptionGroup var selection: Selection
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard !selection.keys.isEmpty else { throw ValidationError("give at least one key") }
        }

        func run() throws {
            var connection = try database.connect()
            let rows = try ParkedStore.load(selection.select(), on: &connection)
            guard !rows.isEmpty else { throw CommandFailure("no such key is parked") }
            if output.json { return try printJSON(rows) }
            for row in rows {
                for (name, value) in row.details { print("\(name.padding(to: 12))\(value)") }
                if let object = try ParkedStore.object(row, on: &connection) { print("object      \(object)") }
                print()
            }
        }
    }

    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Try parked keys again now, with all their attempts.",
            discussion: "A message that could not be read cannot be tried again: discard it.")
        @OptionGroup var selection: Selection
        @Flag(help: "All of them.") var all = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws { try selection.requireSome(all: all) }

        func run() throws {
            var connection = try database.connect()
            var count = 0
            try ParkedStore.forEachPage(selection.select(), on: &connection) { names, connection in
                count += try ParkedStore.retry(names, on: &connection)
            }
            try answer(count, "tried again", selection, output)
        }
    }

    struct Discard: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forget parked keys; their objects stay as they are.",
            discussion: "A newer event of a key is handled as always.")
        @OptionGroup var selection: Selection
        @Flag(help: "All of them.") var all = false
        @Flag(help: "Do not ask.") var yes = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws { try selection.requireSome(all: all) }

        func run() throws {
            var connection = try database.connect()
            var count = 0
            if yes {
                try ParkedStore.forEachPage(selection.select(), on: &connection) { names, connection in
                    count += try ParkedStore.discard(names, on: &connection)
                }
                return try answer(count, "discarded", selection, output)
            }
            let rows = try ParkedStore.load(selection.select(), on: &connection)
            if !rows.isEmpty {
                guard isatty(STDIN_FILENO) == 1 else { throw ValidationError("nobody can be asked: give --yes") }
                print(ParkedStore.table(rows).text, terminator: "")
                print("Discard \(rows.count)? Type yes: ", terminator: "")
                fflush(nil)
                guard readLine() == "yes" else { throw CommandFailure("nothing was discarded") }
            }
            // Only what was shown: what was parked meanwhile stays.
            for page in rows.chunks(ofCount: ParkedStore.pageCountMax) {
                count += try ParkedStore.discard(page.map(\.name), on: &connection)
            }
            try answer(count, "discarded", selection, output)
        }
    }
}

private func answer(
    _ count: Int, _ verb: String, _ selection: ParkedCommand.Selection, _ output: OutputOptions
) throws {
    if output.json {
        try printJSON(["count": count])
    } else {
        print("\(count) \(count == 1 ? "key is" : "keys are") \(verb)")
    }
    if count == 0, !selection.keys.isEmpty { throw CommandFailure("no such key is parked") }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
