import Access
import ArgumentParser
import Audit
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Tenants

/// `fieldpost environment role`: says who is an admin, a manager or a worker; how an environment gets its first admin.
struct RoleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "role", abstract: "Make people admins, managers or workers.",
        discussion: "They were invited, or have logged in, before.")
    @Argument(help: "admin, manager or worker.") var role: String
    @Argument(help: "E-mail addresses.") var emails: [String]
    @Option(help: "The environment; needed when there are several.") var environment: String?
    @OptionGroup var database: DatabaseOptions

    private static let roundsMax = 8

    func validate() throws {
        guard Role(rawValue: role) != nil else { throw ValidationError("\(role): there are admin, manager, worker") }
        guard !emails.isEmpty else { throw ValidationError("give at least one e-mail address") }
    }

    func run() throws {
        var connection = try database.connect()
        let environment = try EnvironmentStore.find(environment, on: &connection)
        let wanted = emails.map(EmailAddress.lowered)
        let people = try People.objects(of: wanted, in: environment, on: &connection)
        if let stranger = wanted.first(where: { email in !people.contains { $0.email == email } }) {
            throw CommandFailure("\(stranger) was neither invited nor has logged in")
        }
        try People.add(people.map { (id: $0.id, name: "") }, in: environment, on: &connection)
        var directory = RealmDirectory()
        guard let common = try directory.id(of: .common, in: environment, create: true, on: &connection) else {
            throw CommandFailure("the realm \(RealmPath.common) could not be made")
        }
        let keys = people.map { ObjectKey(realm: common, kind: .person, id: $0.id) }
        try give(role, to: keys, in: environment, on: &connection)
        for person in people { print("\(person.email) is \(role)") }
    }

    /// All of them or, when one changes meanwhile, none; then once more.
    private func give(
        _ role: String, to keys: [ObjectKey], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        for _ in 0..<Self.roundsMax {
            let there = try RealmObject.byKey(try connection.run(RealmObject.load(keys, in: environment)))
            var batch = WriteBatch(environment: environment)
            for key in keys {
                guard let object = there[key], let fields = object.fields else {
                    throw CommandFailure("somebody deleted the Person \(key.id.text) meanwhile; nothing was changed")
                }
                let before = Role(of: try JSONObject(fields.bytes)).rawValue
                guard before != role else {
                    batch.expect(key, at: object.position, decision: 0)
                    continue
                }
                try batch.patch(object, CanonicalJSON(encoding: ["role": role]), decision: 0)
                batch.also(
                    Administrator.commandLine.audit(
                        .roleChanged, key.id.text, in: environment, detail: ["from": before, "to": role], decision: 0))
            }
            if try batch.commit(on: &connection).missed.isEmpty { return }
        }
        throw CommandFailure("others write these people all the time; nothing was changed")
    }
}
