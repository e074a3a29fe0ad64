import Access
import ArgumentParser
import Audit
import BackendConnections
import BackendProtocol
import Backends
import CommandLineSupport
import FoundationEssentials
import HTTPClient
import Model
import ObjectStore
import Postgres
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment people`: lists people, and adds those that the back end proposes.
    struct People: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List people, and add people from the back end.",
            discussion: """
                With --from-backend the back end's people are listed, and nothing changes until some are accepted. \
                Accepting asserts that an address belongs to its person; time is booked on the reference. --accept-all \
                adds new people. A reference that differs from the stored one is replaced only with --accept. No \
                person is removed. Some back ends cannot list people (sap).
                """)
        @Argument(help: "The environment.") var name: String
        @Flag(help: "List the back end's people.") var fromBackend = false
        @Option(
            name: .customLong("accept"), parsing: .upToNextOption,
            help: ArgumentHelp("Add these people, or replace their references.", valueName: "email"))
        var accepted: [String] = []
        @Flag(help: "Add all new people.") var acceptAll = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        private static let callMax = Duration.seconds(30)

        func validate() throws {
            guard fromBackend || (accepted.isEmpty && !acceptAll) else {
                throw ValidationError("--accept and --accept-all need --from-backend")
            }
            guard accepted.isEmpty || !acceptAll else {
                throw ValidationError("give --accept or --accept-all, not both")
            }
        }

        func run() async throws {
            var connection = try database.connect(EnvironmentStore.limits)
            if acceptAll || !accepted.isEmpty { try EnvironmentStore.lock(name, on: &connection) }
            let (stored, id) = try EnvironmentStore.existing(name, on: &connection)
            guard fromBackend else { return try list(id, on: &connection) }
            var proposals = PersonProposals(
                try await proposedPeople(id, on: &connection),
                stored: try BackendPeople.references(in: id, on: &connection),
                domains: stored.domains, addresses: stored.addresses)
            if acceptAll || !accepted.isEmpty {
                let people = acceptAll ? proposals.acceptAll() : try proposals.accept(accepted)
                try save(people, in: id, on: &connection)
            }
            try show(proposals.rows)
        }

        private func list(_ id: EnvironmentID, on connection: inout Connection) throws {
            let people = try BackendPeople.list(in: id, on: &connection)
            let table = Table(
                ["PERSON", "REFERENCE", "REALM"], people,
                empty: "no people; add people with: fieldpost environment edit \(name) --people FILE"
            ) { [$0.email, PersonProposals.text($0.reference), $0.hasRealm ? "yes" : "no"] }
            try output.show(people, table)
        }

        private func proposedPeople(
            _ id: EnvironmentID, on connection: inout Connection
        ) async throws -> [BackendPersonProposal] {
            guard let backend = try BackendConfiguration.load(id, on: &connection) else {
                throw CommandFailure("\(name) has no back end in Fieldpost: its integration manages its people")
            }
            let client = Client()
            defer { client.shutDown() }
            let adapter: any TimeBackend
            let secrets = try SecretOptions.box()
            do throws(MissingBackend) {
                adapter = try backend.make(client: client, secrets: secrets, callMax: Self.callMax)
            } catch {
                throw CommandFailure(error.description)
            }
            guard adapter.capabilities.supportsPeopleListing else {
                throw CommandFailure(
                    "\(backend.kind) cannot list people with e-mail addresses; add them with: "
                        + "fieldpost environment edit \(name) --people FILE")
            }
            do throws(BackendError) { return try await adapter.people() } catch {
                switch error {
                case .refused(let messages):
                    throw CommandFailure("\(backend.kind) rejects the request: \(messages.joined(separator: "; "))")
                case .notProcessed(let reason, _), .outcomeUnknown(let reason, _):
                    throw CommandFailure("\(backend.kind) does not respond: \(reason)")
                case .unauthorized(let reason):
                    throw CommandFailure("\(backend.kind) does not accept Fieldpost's credentials: \(reason)")
                case .deadlineExceeded: throw CommandFailure("\(backend.kind) was not called before the deadline")
                }
            }
        }

        private func save(_ people: [BackendPerson], in id: EnvironmentID, on connection: inout Connection) throws {
            guard !people.isEmpty else { return }
            try connection.run([
                try EnvironmentStore.addPeople(people, to: name),
                Administrator.commandLine.audit(.personAccepted, people.map(\.email), in: id),
            ])
        }

        private func show(_ rows: [PersonProposals.Row]) throws {
            let table = Table(
                ["PERSON", "NAME", "REFERENCE", "STATE", "DETAIL"], rows, empty: "the back end has no people"
            ) { row in
                let reference = PersonProposals.text(row.reference)
                return [row.email ?? "-", row.name, reference, row.state.rawValue, row.detail ?? ""]
            }
            try output.show(rows, table)
        }
    }
}
