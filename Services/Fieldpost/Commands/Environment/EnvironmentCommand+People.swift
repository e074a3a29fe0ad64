import Access
import Algorithms
import ArgumentParser
import Audit
import BackendConnections
import BackendProtocol
import CommandLineSupport
import FoundationEssentials
import HTTPClient
import Model
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
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
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

    /// `fieldpost environment invite`: registers people, so that `realm-initializer` fills their realms.
    struct Invite: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Register people and fill their realms from the back end.",
            discussion: "People who were invited before are unchanged.")
        @Argument(help: "Invite these e-mail addresses of the environment's people.") var emails: [String] = []
        @Flag(help: "Invite all people of the environment.") var all = false
        @Option(help: "Environment; required if there are several.", completion: Completion.environments)
        var environment: String?
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

/// The people that a back end proposes, compared with those that an environment has.
struct PersonProposals {
    enum State: String, Encodable {
        case new
        /// The stored reference is the same.
        case unchanged
        /// The stored reference differs.
        case differs
        case unusable
        /// Added or updated by this command.
        case accepted
    }

    struct Row: Encodable {
        /// Normalised, if it is an address.
        let email: String?
        let name: String
        let reference: [String: String]
        var state: State
        var detail: String?
    }

    private(set) var rows: [Row]

    init(
        _ proposals: [BackendPersonProposal], stored: [String: [String: String]], domains: [String], addresses: [String]
    ) {
        let emails = proposals.map { $0.email.flatMap { EmailAddress($0) } }
        let counts = Dictionary(emails.compactMap { $0?.description }.map { ($0, 1) }, uniquingKeysWith: +)
        rows = zip(proposals, emails).map { proposal, email in
            func row(_ state: State, _ detail: String? = nil) -> Row {
                Row(
                    email: email?.description ?? proposal.email, name: proposal.name, reference: proposal.reference,
                    state: state, detail: detail)
            }
            guard let text = proposal.email else { return row(.unusable, "no e-mail address") }
            guard let email else { return row(.unusable, "'\(text)' is not a usable e-mail address") }
            guard !proposal.isBarred else { return row(.unusable, "barred in the back end") }
            guard domains.contains(email.domain) || addresses.contains(email.description) else {
                return row(.unusable, "not in the environment's domains and addresses")
            }
            // Its owner is ambiguous.
            guard counts[email.description] == 1 else { return row(.unusable, "the address occurs twice") }
            guard let reference = stored[email.description] else { return row(.new) }
            return reference == proposal.reference
                ? row(.unchanged) : row(.differs, "stored reference: \(Self.text(reference))")
        }
    }

    /// Accepts all new people.
    mutating func acceptAll() -> [BackendPerson] { accept { $0.state == .new } }

    /// Accepts the named people, who are new or have a different reference.
    ///
    /// - Throws: `CommandFailure` if one of them cannot be accepted; then none is.
    mutating func accept(_ emails: [String]) throws -> [BackendPerson] {
        let requested = Set(emails.map(EmailAddress.lowered))
        for email in requested.sorted() {
            let matches = rows.filter { $0.email == email }
            if matches.isEmpty { throw CommandFailure("the back end has no person with the address \(email)") }
            if let row = matches.first(where: { $0.state == .unusable }) {
                throw CommandFailure("\(email) cannot be accepted: \(row.detail ?? "")")
            }
        }
        return accept { row in
            (row.state == .new || row.state == .differs) && row.email.map(requested.contains) ?? false
        }
    }

    private mutating func accept(where isAccepted: (Row) -> Bool) -> [BackendPerson] {
        var accepted: [BackendPerson] = []
        for index in rows.indices where isAccepted(rows[index]) {
            guard let email = rows[index].email else { continue }
            accepted.append(BackendPerson(email: email, reference: rows[index].reference))
            rows[index].state = .accepted
        }
        return accepted
    }

    /// The reference as one line of text.
    static func text(_ reference: [String: String]) -> String {
        reference.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    }
}
