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
    /// `fieldpost realm who`: by which rule people may open a realm, or may not.
    struct Who: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Who may open a realm, and by which rule; why somebody does not see it.",
            discussion: """
                Decided as the gateway decides it, for everybody of the environment in turn. With --person one \
                person, whether they may or not, and what else keeps them from seeing it; with --id also whether that \
                object is in it.
                """)
        @Argument(help: "The realm's path.") var path: String
        @Option(help: "Only this person: an e-mail address.") var person: String?
        @Option(help: "With --person: an object that they do not see.") var id: String?
        @Flag(help: "Those too who may not open it.") var all = false
        @OptionGroup var place: Place

        func validate() throws {
            _ = try RealmCommand.path(path)
            if let id, UUID(ascii: id) == nil { throw ValidationError("--id \(id) is no UUID") }
            guard person != nil || id == nil else { throw ValidationError("--id needs --person") }
            guard person == nil || !all else { throw ValidationError("--all and --person exclude each other") }
        }

        /// One person before the realm.
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
            var connection = try place.database.connect()
            let environment = try EnvironmentStore.find(place.environment, on: &connection)
            var access = PeopleAccess(environment, realm: realm)
            if let person { return try tell(of: person, realm, &access, environment, on: &connection) }
            var rows: [Row] = []
            var last = ""
            while true {
                let page = try access.page(after: last, on: &connection)
                guard let end = page.last else { break }
                last = end.email
                rows += page.map { Row($0, realm) }.filter { all || $0.mayOpen }
            }
            try place.output.show(rows, Self.table(rows, realm))
        }

        private func tell(
            of email: String, _ realm: RealmPath, _ access: inout PeopleAccess, _ environment: EnvironmentID,
            on connection: inout Connection
        ) throws {
            guard let person = try access.person(EmailAddress.lowered(email), on: &connection) else {
                throw CommandFailure("\(email) was neither invited nor has logged in")
            }
            let row = Row(person, realm)
            var facts: [String] = []
            if !person.hasLoggedIn { facts.append("nobody has logged in with this address yet") }
            let reader = try RealmContentReader(realm, in: environment, on: &connection)
            if reader == nil { facts.append("the realm is empty: nothing was ever written to it") }
            if let id, let object = UUID(ascii: id) {
                let there = try reader?.objects(nil, id: object, countMax: 1, on: &connection).first
                if let there {
                    facts.append("\(there.kind) \(id) is in it, changed last at position \(there.position)")
                } else {
                    let others = try RealmContentReader.realms(holding: object, in: environment, on: &connection)
                    facts.append("\(id) is not in it; \(RealmCommand.Show.words(others))")
                }
            }
            struct Answer: Encodable {
                let access: Row
                let facts: [String]
            }
            if place.output.json { return try printJSON(Answer(access: row, facts: facts)) }
            print("\(row.person) \(row.mayOpen ? "may" : "may not") open \(realm): \(row.why)")
            for fact in facts { print(Table.oneLine(fact)) }
        }

        static func table(_ rows: [Row], _ realm: RealmPath) -> Table {
            var table = Table(
                [("PERSON", .left), ("ROLE", .left), ("MAY", .left), ("WHY", .left), ("LOGIN", .left)],
                empty: "no person may open \(realm)")
            for row in rows {
                table.add([
                    row.person, row.role, row.mayOpen ? "yes" : "no", row.why, row.hasLoggedIn ? "yes" : "never",
                ])
            }
            return table
        }
    }
}
