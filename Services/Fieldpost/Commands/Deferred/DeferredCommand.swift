import AdminQueries
import ArgumentParser
import CommandLineSupport
import Essentials
import FoundationEssentials
import Model
import Postgres
import Tenants

/// `fieldpost deferred`: keys whose event cannot be processed now, and dead-lettered keys.
struct DeferredCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deferred", abstract: "Manage deferred and dead-lettered keys.",
        discussion: """
            A key is one object, such as /users/ana@example.com/TimeEntry/8c1f…. A service that cannot process its \
            newest change defers it and continues with other keys. States: `waiting`: retried with exponential \
            backoff; dead-lettered after \(DeferredKeyExplanation.attemptsMaxDefault) attempts (about 15 minutes; \
            submitter.attempts.max sets another number), or immediately if a retry cannot help. `circuit`: retried \
            when its back end is available again. `dead`: dead-lettered, needs manual action. List dead-lettered keys \
            with `fieldpost deferred list --dead`, see reason and action with `fieldpost deferred show KEY`, and fix \
            the cause. Then run `fieldpost deferred retry KEY`, or `fieldpost deferred discard KEY`, which keeps the \
            object unchanged. A newer change of the object also ends the deferral.
            """,
        subcommands: [List.self, Show.self, Retry.self, Discard.self, Export.self])

    /// The options that select keys.
    struct Selection: ParsableArguments {
        @Argument(
            help: "Keys, as `deferred list` shows them, or ids of their objects.", completion: Completion.keys)
        var keys: [String] = []
        @Option(help: "Limit to this consumer group: the service that deferred them.", completion: Completion.groups)
        var group: String?
        @Option(help: "Limit to this topic.", completion: Completion.topics) var topic: String?
        @Option(help: "Limit to this environment.", completion: Completion.environments)
        var environment: String?
        @Option(help: "Limit to reasons that contain this text, ignoring case.") var reason: String?
        @Flag(help: "Limit to dead-lettered keys.") var dead = false

        func validate() throws {
            if let topic { _ = try Topic.named(topic) }
            let groups = Set(Topics.all.flatMap(\.consumers))
            guard let group, !groups.contains(group) else { return }
            throw ValidationError("no consumer group \(group); available: \(groups.sorted().joined(separator: ", "))")
        }

        /// Whether the options narrow the selection.
        var isNarrowed: Bool {
            !keys.isEmpty || dead || [group, topic, environment, reason].contains { $0 != nil }
        }

        /// Requires a selection, or `--all`, for a command that changes keys.
        func requireSelection(all: Bool) throws {
            guard isNarrowed || all else {
                throw ValidationError("select keys: KEYS, --group, --topic, --environment, --reason, --dead or --all")
            }
        }

        /// - Throws: `EnvironmentFailure` if the environment does not exist.
        func select(on connection: inout Connection) throws -> DeferredKeyStore.Selection {
            DeferredKeyStore.Selection(
                keys: keys, group: group, topic: topic,
                environment: try environment.map { try EnvironmentStore.find($0, on: &connection).rawValue },
                reason: reason, isDead: dead ? true : nil)
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List deferred and dead-lettered keys, the oldest first.")
        @OptionGroup var selection: Selection
        @Option(help: "Maximum number of keys.") var limit = 1_000
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws { try validateRange("--limit", limit, in: 1...1_000_000) }

        func run() throws {
            var connection = try database.connect()
            let rows = try DeferredKeyStore.load(selection.select(on: &connection), countMax: limit, on: &connection)
            let empty = selection.keys.isEmpty ? "no deferred keys" : "no such key is deferred; a key ends with an id"
            try output.show(rows, DeferredKeyStore.table(rows, empty: empty))
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show reason, object and action of deferred keys.")
        @OptionGroup var selection: Selection
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard selection.isNarrowed else {
                throw ValidationError("select keys: KEYS, --group, --topic, --environment, --reason or --dead")
            }
        }

        func run() throws {
            var connection = try database.connect()
            let rows = try DeferredKeyStore.load(selection.select(on: &connection), countMax: 1_000, on: &connection)
            guard !rows.isEmpty else {
                throw CommandFailure(
                    selection.keys.isEmpty
                        ? "no deferred key matches"
                        : "no such key is deferred; it may have been handled or discarded")
            }
            if output.json { return try printJSON(rows) }
            let objects = try DeferredKeyStore.objects(rows, on: &connection)
            for (row, object) in zip(rows, objects) {
                for (name, value) in DeferredKeyExplanation(row, object).lines {
                    print("\(name.padding(to: 12))\(Table.oneLine(value))")
                }
                print()
            }
        }
    }

    /// Exports each key as a line of JSON, for programs and bug reports.
    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Export deferred keys with their objects as lines of JSON.",
            discussion: """
                In the order of group, environment and key, page by page, for any number of keys. `object` is the \
                object's current state; it is absent if there is none. The output may contain personal data.
                """)
        @OptionGroup var selection: Selection
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect()
            try DeferredKeyStore.forEachPage(selection.select(on: &connection), on: &connection) { rows, connection in
                for (row, object) in zip(rows, try DeferredKeyStore.objects(rows, on: &connection)) {
                    print(try DeferredKeyLine.text(row, object))
                }
            }
        }
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}

extension DeferredKeyStore {
    static func table(_ rows: [Row], empty: String = "no deferred keys") -> Table {
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        return Table(
            ["GROUP", "ENVIRONMENT", "KEY", "STATE", .right("ATTEMPTS"), .right("AGE"), .right("RETRY IN"), "REASON"],
            rows, empty: empty
        ) { row in
            let since = Duration.milliseconds(now - row.parkedAt.millisecondsSinceEpoch)
            let next = Duration.milliseconds(max(0, row.nextAt.millisecondsSinceEpoch - now))
            return [
                row.group, row.environment ?? "-", row.key, row.state.rawValue, String(row.attempts), since.shortText,
                row.state == .dead ? "-" : next.shortText, row.reason,
            ]
        }
    }
}
