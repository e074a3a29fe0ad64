import AdminQueries
import ArgumentParser
import CommandLineSupport
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Tenants

/// `fieldpost realm`: content of and access to realms, and differences between two.
struct RealmCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "realm", abstract: "Show the content of a realm and access to it.",
        discussion: """
            A realm is named by its path, such as /users/ana@example.com, /common, /teams/ID or /shares/ID. These \
            commands change nothing.
            """,
        subcommands: [Show.self, Access.self, Diff.self])

    /// Options of all commands on realms.
    struct RealmOptions: ParsableArguments {
        @Option(help: "Environment; required if there are several.") var environment: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions
    }

    /// Parses a path argument.
    static func path(_ text: String) throws -> RealmPath {
        do {
            return try RealmPath(validating: text)
        } catch {
            throw ValidationError("\(text) is not a realm's path: \(error.reason)")
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Count a realm's objects by kind, or print some of them.",
            discussion: "With --kind or --id it prints objects. Long fields are cut off; --json prints all of them.")
        @Argument(help: "Path of the realm.") var path: String
        @Option(help: "Print the objects of this kind.") var kind: String?
        @Option(help: "Print the objects with this id.") var id: String?
        @Option(help: "Maximum number of objects.") var limit = 100
        @OptionGroup var options: RealmOptions

        func validate() throws {
            _ = try RealmCommand.path(path)
            if let kind, Kind(rawValue: kind) == nil {
                let kinds = Kind.allCases.map(\.rawValue).sorted().joined(separator: ", ")
                throw ValidationError("--kind must be one of \(kinds), not \(kind)")
            }
            if let id, UUID(ascii: id) == nil { throw ValidationError("--id \(id) is not a UUID") }
            try validateRange("--limit", limit, in: 1...100_000)
        }

        func run() throws {
            let path = try RealmCommand.path(path)
            var connection = try options.database.connect()
            let environment = try EnvironmentStore.find(options.environment, on: &connection)
            guard let reader = try RealmContentReader(path, in: environment, on: &connection) else {
                throw CommandFailure("realm \(path) does not exist: it was never written")
            }
            if kind == nil, id == nil {
                let rows = try reader.counts(on: &connection)
                return try options.output.show(rows, RealmContentReader.table(rows))
            }
            let objects = try reader.objects(
                kind.flatMap { Kind(rawValue: $0) }, id: id.flatMap { UUID(ascii: $0) }, countMax: limit,
                on: &connection)
            if objects.isEmpty, let id {
                let elsewhere = try RealmContentReader.realms(
                    holding: UUID(ascii: id) ?? UUID(), in: environment, on: &connection)
                throw CommandFailure("\(id) is not in \(path); \(Self.text(elsewhere))")
            }
            try options.output.show(objects, RealmContentReader.table(objects))
        }

        /// The other realms that have an object.
        static func text(_ realms: [String]) -> String {
            realms.isEmpty ? "it is in no other realm" : "it is in \(realms.joined(separator: ", "))"
        }
    }

    struct Diff: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Compare the objects of two realms.",
            discussion: "Lists objects that only one realm has, or that have different fields.")
        @Argument(help: "Path of one realm.") var path: String
        @Argument(help: "Path of the other realm.") var other: String
        @Option(help: "Maximum number of differences.") var limit = 1_000
        @OptionGroup var options: RealmOptions

        func validate() throws {
            for path in [path, other] { _ = try RealmCommand.path(path) }
            try validateRange("--limit", limit, in: 1...1_000_000)
        }

        func run() throws {
            var connection = try options.database.connect()
            let environment = try EnvironmentStore.find(options.environment, on: &connection)
            let readers = try [path, other].map { text in
                let path = try RealmCommand.path(text)
                guard let reader = try RealmContentReader(path, in: environment, on: &connection) else {
                    throw CommandFailure("realm \(path) does not exist: it was never written")
                }
                return reader
            }
            let rows = try RealmDifference.list(readers[0], readers[1], countMax: limit, on: &connection)
            try options.output.show(rows, RealmDifference.table(rows, path, other))
        }
    }
}
