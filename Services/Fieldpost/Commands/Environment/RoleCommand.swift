import Access
import ArgumentParser
import Audit
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Tenants

/// `fieldpost environment role`: sets people's roles. An environment gets its first admin with it.
struct RoleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "role", abstract: "Set people's role: admin, manager or worker.",
        discussion: "The people must have been invited or have logged in.")
    @Argument(help: "Role: admin, manager or worker.") var role: String
    @Argument(help: "E-mail addresses of the people.") var emails: [String]
    @Option(help: "Environment; required if there are several.", completion: Completion.environments)
    var environment: String?
    @OptionGroup var database: DatabaseOptions

    private static let attemptsMax = 8

    func validate() throws {
        guard Role(rawValue: role) != nil else {
            throw ValidationError("the role must be admin, manager or worker, not \(role)")
        }
        guard !emails.isEmpty else { throw ValidationError("give at least one e-mail address") }
    }

    func run() throws {
        var connection = try database.connect()
        let environment = try EnvironmentStore.find(environment, on: &connection)
        let requested = emails.map(EmailAddress.lowered)
        let people = try People.objects(of: requested, in: environment, on: &connection)
        if let unknown = requested.first(where: { email in !people.contains { $0.email == email } }) {
            throw CommandFailure("\(unknown) was not invited and has not logged in")
        }
        try People.add(people.map { (id: $0.id, name: "") }, in: environment, on: &connection)
        var directory = RealmDirectory()
        guard let common = try directory.id(of: .common, in: environment, create: true, on: &connection) else {
            throw CommandFailure("the realm \(RealmPath.common) could not be created")
        }
        let keys = people.map { ObjectKey(realm: common, kind: .person, id: $0.id) }
        try set(role, to: keys, in: environment, on: &connection)
        for person in people { print("\(person.email) is \(role)") }
    }

    /// Changes all of them in one transaction; retries if one changes meanwhile.
    private func set(
        _ role: String, to keys: [ObjectKey], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        for _ in 0..<Self.attemptsMax {
            let stored = try RealmObject.byKey(try connection.run(RealmObject.load(keys, in: environment)))
            var batch = WriteBatch(environment: environment)
            for key in keys {
                guard let object = stored[key], let fields = object.fields else {
                    throw CommandFailure("the Person \(key.id.text) was deleted meanwhile; nothing was changed")
                }
                let before = Role(of: try JSONObject(fields.bytes)).rawValue
                guard before != role else {
                    batch.expect(key, at: object.position, decision: 0)
                    continue
                }
                try batch.patch(object, CanonicalJSON(encoding: ["role": role]), decision: 0)
                batch.append(
                    Administrator.commandLine.audit(
                        .roleChanged, key.id.text, in: environment, detail: ["from": before, "to": role], decision: 0))
            }
            if try batch.commit(on: &connection).conflicts.isEmpty { return }
        }
        throw CommandFailure(
            "conflict: these people were changed \(Self.attemptsMax) times meanwhile; nothing was changed, run it again"
        )
    }
}
