import Access
import Algorithms
import ArgumentParser
import Audit
import BackendConnections
import CommandLineSupport
import Identity
import Model
import ObjectStore
import Postgres
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment invite`: makes people's realms known, so that `realm-initializer` fills them.
    struct Invite: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make people's realms known, so that they are filled from the back end.",
            discussion: "Nothing changes for those who were invited already.")
        @Argument(help: "E-mail addresses of people that were added with the environment.") var emails: [String] = []
        @Flag(help: "Everybody whom the environment has.") var all = false
        @Option(help: "The environment; needed when there are several.") var environment: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard emails.isEmpty == all else {
                throw ValidationError(
                    emails.isEmpty ? "give e-mail addresses or --all" : "give e-mail addresses or --all, not both")
            }
        }

        func run() throws {
            var connection = try database.connect()
            let environment = try EnvironmentStore.find(environment, on: &connection)
            let wanted = Set(emails.map(EmailAddress.lowered)).sorted()
            let people = try BackendPeople.emails(all ? nil : wanted, in: environment, on: &connection)
            if let stranger = wanted.first(where: { !people.contains($0) }) {
                throw CommandFailure("\(stranger) is none of the environment's people; add --people first")
            }
            var rows: [Invitation] = []
            for batch in people.chunks(ofCount: Registration.batchCountMax) {
                let registered = try Registration.register(Array(batch), in: environment, on: &connection).map {
                    Invitation(email: $0.email, realm: $0.path.description, isNew: $0.isNew)
                }
                let invited = registered.filter(\.isNew).map(\.email)
                if !invited.isEmpty {
                    try connection.run(Administrator.commandLine.audit(.peopleInvited, invited, in: environment))
                }
                rows += registered
            }
            try show(rows)
        }

        private func show(_ rows: [Invitation]) throws {
            if output.json { return try printJSON(rows) }
            let count = rows.count { $0.isNew }
            if rows.count > 20 {
                print("\(count) people invited, \(rows.count - count) were invited before")
                return
            }
            var table = Table([("PERSON", .left), ("REALM", .left), ("STATE", .left)], empty: "nobody to invite")
            for row in rows { table.add([row.email, row.realm, row.isNew ? "invited" : "was invited before"]) }
            print(table.text, terminator: "")
        }

        struct Invitation: Encodable {
            let email: String
            let realm: String
            let isNew: Bool
        }
    }
}
