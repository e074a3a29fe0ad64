import ArgumentParser
import BackendConnections
import BackendProtocol
import CommandLineSupport
import Essentials
import FoundationEssentials
import Model
import Postgres
import Tenants

/// `fieldpost environment`: the tenants of the installation.
struct EnvironmentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "environment", abstract: "Manage environments (tenants), their people and connections.",
        subcommands: [
            Add.self, Edit.self, Show.self, List.self, Check.self, Invite.self, Devices.self, Revoke.self,
            Unbind.self, Templates.self, Outline.self, People.self, Export.self, RollBack.self, CutOver.self,
            Import.self, Activate.self, Discard.self, Moves.self, RoleCommand.self, IntegrationCommand.self,
            DefectsCommand.self, DeliveriesCommand.self, Erase.self, Remove.self,
        ])

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add an environment, or update it.", discussion: EnvironmentOptions.discussion)
        @Argument(help: "Name: lower-case letters, digits and hyphens.") var name: String
        @OptionGroup var options: EnvironmentOptions
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws { try validateName(name) }

        func run() async throws {
            var connection = try database.connect(EnvironmentStore.limits)
            try EnvironmentStore.lock(name, on: &connection)
            let stored = try EnvironmentStore.load(name, on: &connection) ?? StoredEnvironment(name: name)
            try await options.save(over: stored, on: &connection)
            try showEnvironments(try EnvironmentStore.list(on: &connection).filter { $0.name == name }, output)
        }
    }

    struct Edit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Change the given options of an environment.", discussion: EnvironmentOptions.discussion)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @OptionGroup var options: EnvironmentOptions
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            var connection = try database.connect(EnvironmentStore.limits)
            try EnvironmentStore.lock(name, on: &connection)
            let (stored, _) = try EnvironmentStore.existing(name, on: &connection)
            try await options.save(over: stored, on: &connection)
            try showEnvironments(try EnvironmentStore.list(on: &connection).filter { $0.name == name }, output)
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the environments.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            try showEnvironments(try EnvironmentStore.list(on: &connection), output)
        }
    }

    /// Reads the people of `--people`.
    static func readPeople(_ path: String, domains: [String], addresses: [String]) throws -> [BackendPerson] {
        let data = try TextFile.read(path)
        do throws(JSONError) { try JSONCheck.checkKeys(ofFile: Array(data)) } catch {
            throw CommandFailure("\(path): \(error)")
        }
        guard let people = try? JSONDecoder().decode([BackendPerson].self, from: data) else {
            throw CommandFailure(#"\#(path) is not a JSON array of {"email": text, "reference": {name: text}}"#)
        }
        var emails: Set<String> = []
        for person in people {
            guard let email = EmailAddress(person.email) else {
                throw CommandFailure("\(path): '\(person.email)' is not an e-mail address")
            }
            guard domains.contains(email.domain) || addresses.contains(email.description) else {
                throw CommandFailure("\(path): \(person.email) is not in a domain of the environment")
            }
            guard emails.insert(email.description).inserted else {
                throw CommandFailure("\(path): \(person.email) occurs twice")
            }
        }
        return people
    }

    /// `fieldpost environment show`: the configuration of an environment, without secrets.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the configuration of an environment.")
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let (stored, id) = try EnvironmentStore.existing(name, on: &connection)
            let defects = try DefectTracker.load(id, on: &connection)
            let outline = try OutlineStore.load(id, on: &connection)
            let shown = Shown(stored, defects.map(DefectsCommand.Row.init), outlineBytes: outline?.content.utf8.count)
            if output.json { return try printJSON(shown) }
            print(Table(["SETTING", "VALUE"], shown.lines) { [$0.0, $0.1] }.text, terminator: "")
        }
    }

    private struct Shown: Encodable {
        let name, issuer, audience, jwksUrl: String
        let domains, addresses, scopes: [String]
        let discoveryUrl, clientId: String?
        let hasClientSecret: Bool
        let initialiseOn: String
        let hidesUnknown: Bool
        let addressVerifiedBy, backend: String
        /// Days for which deleted objects and ended shares are retained.
        let deletedDays: Int32
        /// `nil` without a back end.
        let backendUrl, backendUser: String?
        /// The services' variable, or `nil` when the password is stored.
        let backendPasswordVariable: String?
        let hasBackendPassword: Bool
        /// `nil` without a back end.
        let pollIntervalSeconds, fullPollIntervalSeconds: Int32?
        /// `nil` without a rate limit.
        let callsPerSecond, personCallsPerSecond: Int32?
        let backendSettings: [String: String]
        /// Whether it declares its own templates.
        let hasTemplates: Bool
        /// Its defect tracker, if any.
        let defects: DefectsCommand.Row?
        /// Size of the map's outline, if it has one.
        let outlineBytes: Int?

        init(_ stored: StoredEnvironment, _ defects: DefectsCommand.Row?, outlineBytes: Int?) {
            self.outlineBytes = outlineBytes
            name = stored.name
            domains = stored.domains
            addresses = stored.addresses
            issuer = stored.issuer
            audience = stored.audience
            jwksUrl = stored.jwksURL
            discoveryUrl = stored.discoveryURL
            clientId = stored.clientID
            hasClientSecret = stored.clientSecret != nil
            scopes = stored.scopes
            initialiseOn = stored.initialiseOn
            hidesUnknown = stored.hidesUnknown
            addressVerifiedBy = stored.addressVerifiedBy
            deletedDays = stored.deletedDays
            backend = stored.backend
            backendUrl = stored.hasBackend ? stored.backendURL : nil
            backendUser = stored.hasBackend ? stored.backendUser : nil
            backendPasswordVariable = stored.backendPasswordVariable
            hasBackendPassword = stored.backendPassword != nil
            pollIntervalSeconds = stored.hasBackend ? stored.pollSeconds : nil
            fullPollIntervalSeconds = stored.hasBackend ? stored.fullPollSeconds : nil
            callsPerSecond = stored.callsPerSecond
            personCallsPerSecond = stored.personCallsPerSecond
            backendSettings = stored.backendSettings
            hasTemplates = stored.templates != nil
            self.defects = defects
        }

        var lines: [(String, String)] {
            [
                ("name", name), ("domains", domains.joined(separator: ", ")),
                ("addresses", addresses.isEmpty ? "-" : addresses.joined(separator: ", ")), ("issuer", issuer),
                ("audience", audience), ("keys", jwksUrl), ("configuration", discoveryUrl ?? "below the issuer"),
                ("client", clientId ?? "-"), ("client secret", hasClientSecret ? "stored, sealed" : "not set"),
                ("scopes", scopes.joined(separator: " ")), ("realms are initialised on", initialiseOn),
                ("registered addresses are disclosed", hidesUnknown ? "no" : "yes"),
                ("addresses are verified by", addressVerifiedBy),
                ("deleted objects are retained for", "\(deletedDays) days"),
                ("map's outline", outlineBytes.map { "\($0) bytes" } ?? "none: fieldpost environment outline"),
            ] + backendLines + defectLines
        }

        private var defectLines: [(String, String)] {
            guard let defects else { return [("defects", "none: fieldpost environment defects add")] }
            return [
                ("defects", "\(defects.server) \(defects.repository)/\(defects.userDatabase) \(defects.recordType)"),
                ("defects' account", defects.account), ("defects' poll interval", "\(defects.pollIntervalSeconds) s"),
            ]
        }

        private var backendLines: [(String, String)] {
            guard let backendUrl, let backendUser, let pollIntervalSeconds, let fullPollIntervalSeconds else {
                return [("back end", "none: an integration manages it")]
            }
            let lines: [(String, String)] = [
                ("back end", "\(backend) \(backendUrl)"), ("back end's user", backendUser),
                (
                    "its password",
                    backendPasswordVariable.map { "in the services' variable \($0)" }
                        ?? (hasBackendPassword ? "stored, sealed" : "not set")
                ), ("poll interval", "\(pollIntervalSeconds) s"),
                ("full poll interval", "\(fullPollIntervalSeconds) s"),
                ("calls per second", callsPerSecond.map { "\($0)" } ?? "unlimited"),
                ("calls per second and person", personCallsPerSecond.map { "\($0)" } ?? "unlimited"),
                ("templates", hasTemplates ? "its own: fieldpost environment templates" : "the adapter's"),
            ]
            return lines + backendSettings.keys.sorted().map { ("setting \($0)", backendSettings[$0] ?? "") }
        }
    }
}

private func showEnvironments(_ rows: [EnvironmentStore.Row], _ output: OutputOptions) throws {
    let table = Table(
        [
            .right("ID"), "NAME", "DOMAINS", .right("PEOPLE"), .right("INVITED"), .right("READY"), .right("POSITION"),
            .right("PUBLISHED"), "MOVE", "BACK END",
        ], rows, empty: "no environments; add one with: fieldpost environment add"
    ) { row in
        [
            String(row.id), row.name, row.domains.joined(separator: ", "), String(row.people), String(row.invited),
            String(row.ready), String(row.position), String(row.published), row.move ?? "-",
            row.backend.map { "\($0) \(row.backendURL ?? "")" } ?? "-",
        ]
    }
    try output.show(rows, table)
}
