import Access
import AdminQueries
import ArgumentParser
import CommandLineSupport
import Essentials
import FoundationEssentials
import Model
import Postgres
import Tenants

extension RealmCommand {
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
            let why: String
            let hasLoggedIn: Bool

            init(_ person: PeopleAccess.Person, _ realm: RealmPath) {
                let explanation = person.state.explanation(of: realm)
                self.person = person.email
                role = person.state.role.rawValue
                mayOpen = explanation.isOpen
                why = explanation.reason
                hasLoggedIn = person.hasLoggedIn
            }
        }

        func run() throws {
            let realm = try RealmCommand.path(path)
            var connection = try options.database.connect()
            let environment = try EnvironmentStore.find(options.environment, on: &connection)
            var access = PeopleAccess(environment, realm: realm)
            if let person { return try explain(person, realm, &access, environment, on: &connection) }
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

        private func explain(
            _ email: String, _ realm: RealmPath, _ access: inout PeopleAccess, _ environment: EnvironmentID,
            on connection: inout Connection
        ) throws {
            guard let person = try access.person(EmailAddress.lowered(email), on: &connection) else {
                throw CommandFailure("\(email) was not invited and has not logged in")
            }
            let row = Row(person, realm)
            var facts: [String] = []
            if !person.hasLoggedIn { facts.append("no login with this address yet") }
            let reader = try RealmContentReader(realm, in: environment, on: &connection)
            if reader == nil { facts.append("the realm is empty: it was never written") }
            if let id, let objectID = UUID(ascii: id) {
                let object = try reader?.objects(nil, id: objectID, countMax: 1, on: &connection).first
                if let object {
                    facts.append("the realm has the \(object.kind) \(id), last changed at position \(object.position)")
                } else {
                    let others = try RealmContentReader.realms(holding: objectID, in: environment, on: &connection)
                    facts.append("the realm does not have \(id); \(RealmCommand.Show.text(others))")
                }
            }
            struct Explanation: Encodable {
                let access: Row
                let facts: [String]
            }
            if options.output.json { return try printJSON(Explanation(access: row, facts: facts)) }
            print("\(row.person) \(row.mayOpen ? "may" : "may not") open \(realm): \(row.why)")
            for fact in facts { print(Table.oneLine(fact)) }
        }

        static func table(_ rows: [Row], _ realm: RealmPath) -> Table {
            Table(
                ["PERSON", "ROLE", "ACCESS", "REASON", "LOGIN"], rows, empty: "no person may open \(realm)"
            ) { [$0.person, $0.role, $0.mayOpen ? "yes" : "no", $0.why, $0.hasLoggedIn ? "yes" : "never"] }
        }
    }
}
