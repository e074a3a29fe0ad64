import ArgumentParser
import FoundationEssentials
import Model
import Postgres
import Realms

/// `fieldpost environment role`: says who is an admin, a manager or a worker; how an environment gets its first admin.
struct RoleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "role", abstract: "Make people admins, managers or workers.",
        discussion: "They were invited, or have logged in, before.")
    @Argument(help: "admin, manager or worker.") var role: String
    @Argument(help: "E-mail addresses.") var emails: [String]
    @Option(help: "The environment; needed when there are several.") var environment: String?
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard Role(rawValue: role) != nil else { throw ValidationError("\(role): there are admin, manager, worker") }
        guard !emails.isEmpty else { throw ValidationError("give at least one e-mail address") }
    }

    func run() throws {
        var connection = try database.connect()
        let environment = try EnvironmentStore.find(environment, on: &connection)
        let wanted = emails.map { $0.lowercased() }
        let rows = try connection.run(
            """
            SELECT email, object_id FROM access.person
            WHERE environment_id = \(environment.rawValue) AND email = ANY (\(wanted))
            """)
        let people = try rows.map { (email: try $0.value(0, as: String.self), id: try $0.value(1, as: UUID.self)) }
        if let stranger = wanted.first(where: { email in !people.contains { $0.email == email } }) {
            throw CommandFailure("\(stranger) was neither invited nor has logged in")
        }
        try People.add(people.map { (id: $0.id, name: "") }, in: environment, on: &connection)
        var directory = RealmDirectory()
        guard let common = try directory.id(of: .common, in: environment, create: true, on: &connection) else {
            throw CommandFailure("the realm \(RealmPath.common) could not be made")
        }
        var batch = WriteBatch(environment: environment)
        for person in people {
            batch.patch(
                ObjectKey(realm: common, kind: .person, id: person.id), JSONBytes("{\"role\":\"\(role)\"}"), decision: 0
            )
            batch.also(
                Administrator.audit(.roleChanged, person.id.text, in: environment, detail: ["to": role]))
        }
        _ = try batch.commit(on: &connection)
        for person in people { print("\(person.email) is \(role)") }
    }
}
