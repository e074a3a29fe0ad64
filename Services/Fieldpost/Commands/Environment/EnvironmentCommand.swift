import Access
import ArgumentParser
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
            Unbind.self, Templates.self, People.self, Export.self, RollBack.self, CutOver.self, Import.self,
            Activate.self,
            Discard.self, Moves.self,
            RoleCommand.self,
            IntegrationCommand.self, DefectsCommand.self, DeliveriesCommand.self,
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
        @Argument(help: "The environment.") var name: String
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
