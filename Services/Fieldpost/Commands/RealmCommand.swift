import AdminQueries
import ArgumentParser
import CommandLineSupport
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Tenants

/// `fieldpost realm`: what is in a realm, who may open it, and how two realms differ.
struct RealmCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "realm", abstract: "What is in a realm, and who may open it.",
        discussion: """
            A realm is named by its path, such as /users/ana@example.com, /common, /teams/ID or /shares/ID. Nothing is \
            changed.
            """,
        subcommands: [Show.self, Who.self, Diff.self])

    /// Which realm is meant.
    struct Place: ParsableArguments {
        @Option(help: "The environment; needed when there are several.") var environment: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions
    }

    /// Reads a path as an argument.
    static func path(_ text: String) throws -> RealmPath {
        do {
            return try RealmPath(validating: text)
        } catch {
            throw ValidationError("\(text) is no realm's path: \(error.reason)")
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "How many objects a realm has of each kind; with --kind or --id, the objects.",
            discussion: "Fields that do not fit the line are cut off; --json prints all of them.")
        @Argument(help: "The realm's path.") var path: String
        @Option(help: "Print the objects of this kind.") var kind: String?
        @Option(help: "Print the object with this id, whatever it is.") var id: String?
        @Option(help: "At most so many objects.") var limit = 100
        @OptionGroup var place: Place

        func validate() throws {
            _ = try RealmCommand.path(path)
            if let kind, Kind(rawValue: kind) == nil {
                let kinds = Kind.allCases.map(\.rawValue).sorted().joined(separator: ", ")
                throw ValidationError("--kind \(kind): there are \(kinds)")
            }
            if let id, UUID(ascii: id) == nil { throw ValidationError("--id \(id) is no UUID") }
            guard (1...100_000).contains(limit) else { throw ValidationError("--limit is 1…100000") }
        }

        func run() throws {
            let path = try RealmCommand.path(path)
            var connection = try place.database.connect()
            let environment = try EnvironmentStore.find(place.environment, on: &connection)
            guard let reader = try RealmContentReader(path, in: environment, on: &connection) else {
                throw CommandFailure("there is no realm \(path): nothing was ever written to it")
            }
            if kind == nil, id == nil {
                let rows = try reader.counts(on: &connection)
                return try place.output.show(rows, RealmContentReader.table(rows))
            }
            let objects = try reader.objects(
                kind.flatMap { Kind(rawValue: $0) }, id: id.flatMap { UUID(ascii: $0) }, countMax: limit,
                on: &connection)
            if objects.isEmpty, let id {
                let elsewhere = try RealmContentReader.realms(
                    holding: UUID(ascii: id) ?? UUID(), in: environment, on: &connection)
                throw CommandFailure("\(id) is not in \(path); \(Self.words(elsewhere))")
            }
            try place.output.show(objects, RealmContentReader.table(objects))
        }

        /// Where an object is instead.
        static func words(_ realms: [String]) -> String {
            realms.isEmpty ? "it is in no other realm" : "it is in \(realms.joined(separator: ", "))"
        }
    }

    struct Diff: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Which objects one realm has and another has not, or has otherwise.",
            discussion: "Objects are compared by kind, id and fields, not by position.")
        @Argument(help: "The path of one realm.") var path: String
        @Argument(help: "The path of the other.") var other: String
        @Option(help: "Print at most so many differences.") var limit = 1_000
        @OptionGroup var place: Place

        func validate() throws {
            for path in [path, other] { _ = try RealmCommand.path(path) }
            guard (1...1_000_000).contains(limit) else { throw ValidationError("--limit is 1…1000000") }
        }

        func run() throws {
            var connection = try place.database.connect()
            let environment = try EnvironmentStore.find(place.environment, on: &connection)
            let readers = try [path, other].map { text in
                let path = try RealmCommand.path(text)
                guard let reader = try RealmContentReader(path, in: environment, on: &connection) else {
                    throw CommandFailure("there is no realm \(path): nothing was ever written to it")
                }
                return reader
            }
            let rows = try RealmDifference.list(readers[0], readers[1], countMax: limit, on: &connection)
            try place.output.show(rows, RealmDifference.table(rows, path, other))
        }
    }
}
