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
    /// `fieldpost environment invite`: registers people, so that `realm-initializer` fills their realms.
    struct Invite: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Register people and fill their realms from the back end.",
            discussion: "People who were invited before are unchanged.")
        @Argument(help: "Invite these e-mail addresses of the environment's people.") var emails: [String] = []
        @Flag(help: "Invite all people of the environment.") var all = false
        @Option(help: "Environment; required if there are several.") var environment: String?
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
            let requested = Set(emails.map(EmailAddress.lowered)).sorted()
            let people = try BackendPeople.emails(all ? nil : requested, in: environment, on: &connection)
            if let unknown = requested.first(where: { !people.contains($0) }) {
                throw CommandFailure("\(unknown) is not one of the environment's people; add them with --people first")
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
                print("\(count) people invited, \(rows.count - count) invited before")
                return
            }
            let table = Table(["PERSON", "REALM", "STATE"], rows, empty: "no people to invite") {
                [$0.email, $0.realm, $0.isNew ? "invited" : "invited before"]
            }
            print(table.text, terminator: "")
        }

        struct Invitation: Encodable {
            let email: String
            let realm: String
            let isNew: Bool
        }
    }
}
