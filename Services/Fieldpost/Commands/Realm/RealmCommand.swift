import Access
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
        @Option(help: "Environment; required if there are several.", completion: Completion.environments)
        var environment: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions
    }

    /// Parses a path argument. Ids and addresses may be in upper case.
    static func path(_ text: String) throws -> RealmPath {
        do throws(InvalidRealmPath) {
            let path = try RealmPath(validating: text)
            if let email = path.email { return try .user(email) }
            if let email = path.seenEmail { return try .seen(email) }
            if text.hasPrefix("/sent/") { return try .sent(String(text.dropFirst("/sent/".count))) }
            return path
        } catch {
            throw ValidationError("\(text) is not a realm's path: \(error.reason)")
        }
    }

    /// The failure for a realm that does not exist, with the possible paths.
    static func missing(_ path: RealmPath, _ reason: String = "it was never written") -> CommandFailure {
        let ofServices = ["/polls", "/seen/{e-mail}", "/sent/{e-mail}"]
        let patterns = RealmClass.Name.allCases.filter { $0 != .system }.map(\.pattern) + ofServices
        return CommandFailure(
            "realm \(path) does not exist: \(reason); realms are \(patterns.joined(separator: ", "))")
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
            if let id, UUID(ascii: id) == nil { throw ValidationError("--id \(id) is not a UUID") }
            try validateRange("--limit", limit, in: 1...100_000)
        }

        func run() throws {
            let path = try RealmCommand.path(path)
            var connection = try options.database.connect()
            let environment = try EnvironmentStore.find(options.environment, on: &connection)
            let kind = try kind.map { try Self.kind($0, in: environment, on: &connection) }
            guard let reader = try RealmContentReader(path, in: environment, on: &connection) else {
                throw RealmCommand.missing(path)
            }
            if kind == nil, id == nil {
                let rows = try reader.counts(on: &connection)
                return try options.output.show(rows, RealmContentReader.table(rows))
            }
            let objects = try reader.objects(
                kind, id: id.flatMap { UUID(ascii: $0) }, countMax: limit,
                on: &connection)
            if objects.isEmpty, let id {
                let elsewhere = try RealmContentReader.realms(
                    holding: UUID(ascii: id) ?? UUID(), in: environment, on: &connection)
                throw CommandFailure("\(id) is not in \(path); \(Self.text(elsewhere))")
            }
            try options.output.show(try objects.map(ObjectRow.init), RealmContentReader.table(objects))
        }

        private static func kind(
            _ name: String, in environment: EnvironmentID, on connection: inout Connection
        ) throws -> Kind {
            let catalogue = try KindCatalogue.load(environment, on: &connection)
            if let kind = catalogue.kind(named: name) { return kind }
            let kinds = catalogue.all.map(\.rawValue).sorted().joined(separator: ", ")
            throw ValidationError("--kind must be one of \(kinds), not \(name.excerpt)")
        }

        /// The other realms that have an object.
        static func text(_ realms: [String]) -> String {
            realms.isEmpty ? "it is in no other realm" : "it is in \(realms.joined(separator: ", "))"
        }

        /// An object as JSON.
        private struct ObjectRow: Encodable {
            let kind: String
            let id: UUID
            let position, editPosition: Int64
            let fields: JSONValue

            init(_ object: RealmContentReader.Object) throws {
                (kind, id, position, editPosition) = (object.kind, object.id, object.position, object.editPosition)
                fields = try JSONValue(json: object.fields)
            }
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
                    throw RealmCommand.missing(path)
                }
                return reader
            }
            let rows = try RealmDifference.list(readers[0], readers[1], countMax: limit, on: &connection)
            try options.output.show(rows, RealmDifference.table(rows, path, other))
        }
    }

    /// `fieldpost realm access`: the people who may open a realm, and the rules.
    struct Access: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the people who may open a realm, with the rule.",
            discussion: """
                Applies the gateway's rules to each person of the environment. With --person it explains one person's \
                access, and other reasons why they do not see the realm; with --id also whether the realm has that \
                object.
                """)
        @Argument(help: "Path of the realm.") var path: String
        @Option(help: "Explain the access of this e-mail address.") var person: String?
        @Option(help: "Check this object too; needs --person.") var id: String?
        @Flag(help: "Include people without access.") var all = false
        @OptionGroup var options: RealmOptions

        func validate() throws {
            _ = try RealmCommand.path(path)
            if let id, UUID(ascii: id) == nil { throw ValidationError("--id \(id) is not a UUID") }
            guard person != nil || id == nil else { throw ValidationError("--id needs --person") }
            guard person == nil || !all else { throw ValidationError("--all and --person exclude each other") }
        }

        /// One person's access to the realm.
        struct Row: Encodable {
            let person: String
            let role: String
            let mayOpen: Bool
            let reason: String
            let hasLoggedIn: Bool
            /// Other reasons why the person does not see the realm or an object; with `--person` only.
            var facts: [String] = []

            init(_ person: PeopleAccess.Person, _ realm: RealmPath) {
                let explanation = person.state.explanation(of: realm)
                self.person = person.email
                role = person.state.role.rawValue
                mayOpen = explanation.isOpen
                reason = explanation.reason
                hasLoggedIn = person.hasLoggedIn
            }
        }

        func run() throws {
            let realm = try RealmCommand.path(path)
            var connection = try options.database.connect()
            let environment = try EnvironmentStore.find(options.environment, on: &connection)
            var access = PeopleAccess(environment, realm: realm)
            if let person { return try explain(person, realm, &access, environment, on: &connection) }
            try Self.require(realm, &access, in: environment, on: &connection)
            var rows: [Row] = []
            var last = ""
            while true {
                let page = try access.page(after: last, on: &connection)
                guard let end = page.last else { break }
                last = end.email
                rows += page.map { Row($0, realm) }.filter { all || $0.mayOpen }
            }
            try options.output.show(rows, Self.table(rows, realm))
        }

        /// Requires a realm that was written, is one of every environment, or is that of an existing team or person.
        private static func require(
            _ realm: RealmPath, _ access: inout PeopleAccess, in environment: EnvironmentID,
            on connection: inout Connection
        ) throws {
            guard try RealmContentReader(realm, in: environment, on: &connection) == nil else { return }
            switch realm.realmClass {
            case .users, .common, .manager, .archive: return
            case .user:
                guard let email = realm.email, try access.person(email, on: &connection) != nil else {
                    throw RealmCommand.missing(realm, "no person has this address")
                }
            case .team(let id):
                let common = try RealmContentReader(.common, in: environment, on: &connection)
                let teams = try common?.objects(.team, id: id, countMax: 1, on: &connection) ?? []
                if teams.isEmpty { throw RealmCommand.missing(realm, "no team has this id") }
            case .catalogue, .share, .system:
                if realm != .polls { throw RealmCommand.missing(realm) }
            }
        }

        private func explain(
            _ email: String, _ realm: RealmPath, _ access: inout PeopleAccess, _ environment: EnvironmentID,
            on connection: inout Connection
        ) throws {
            guard let person = try access.person(EmailAddress.lowered(email), on: &connection) else {
                throw CommandFailure("\(email) was not invited and has not logged in")
            }
            var row = Row(person, realm)
            if !person.hasLoggedIn { row.facts.append("no login with this address yet") }
            let reader = try RealmContentReader(realm, in: environment, on: &connection)
            if reader == nil { row.facts.append("the realm is empty: it was never written") }
            if let id, let objectID = UUID(ascii: id) {
                let object = try reader?.objects(nil, id: objectID, countMax: 1, on: &connection).first
                if let object {
                    row.facts.append(
                        "the realm has the \(object.kind) \(id), last changed at position \(object.position)")
                } else {
                    let others = try RealmContentReader.realms(holding: objectID, in: environment, on: &connection)
                    row.facts.append("the realm does not have \(id); \(RealmCommand.Show.text(others))")
                }
            }
            if options.output.json { return try printJSON([row]) }
            print("\(row.person) \(row.mayOpen ? "may" : "may not") open \(realm): \(row.reason)")
            for fact in row.facts { print(Table.oneLine(fact)) }
        }

        static func table(_ rows: [Row], _ realm: RealmPath) -> Table {
            Table(
                ["PERSON", "ROLE", "ACCESS", "REASON", "LOGIN"], rows, empty: "no person may open \(realm)"
            ) { [$0.person, $0.role, $0.mayOpen ? "yes" : "no", $0.reason, $0.hasLoggedIn ? "yes" : "never"] }
        }
    }
}

extension RealmContentReader {
    /// Maximum number of characters of an object's fields in a table.
    private static let fieldsShownMax = 100

    static func table(_ counts: [Count]) -> Table {
        Table(
            ["KIND", .right("OBJECTS"), .right("DELETED"), .right("LAST POSITION")], counts, empty: "the realm is empty"
        ) { [$0.kind, "\($0.count)", "\($0.deleted)", "\($0.lastPosition)"] }
    }

    static func table(_ objects: [Object]) -> Table {
        Table(
            ["KIND", "ID", .right("POSITION"), .right("EDITED"), "FIELDS"], objects, empty: "no objects match"
        ) { object in
            let fields = object.fields
            let shown = fields.count > fieldsShownMax ? fields.prefix(fieldsShownMax) + "…" : fields[...]
            return [object.kind, object.id.text, "\(object.position)", "\(object.editPosition)", String(shown)]
        }
    }
}
