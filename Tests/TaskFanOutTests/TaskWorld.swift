import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import TaskFanOut

/// An environment with people and teams, and the handler that keeps its tasks.
struct TaskWorld: ~Copyable {
    var acme: TestEnvironment
    private var fanOut: Settling<TaskHandler>
    private var people: [String: UUID] = [:]

    init(keep: KeepLimits = KeepLimits()) throws {
        acme = try TestEnvironment()
        fanOut = Settling(TaskHandler(keep: keep), of: Services.taskFanOut)
    }

    // MARK: What people do

    mutating func person(_ name: String) throws -> UUID {
        if let id = people[name] { return id }
        let id = UUID()
        try acme.letIn(name, id)
        people[name] = id
        return id
    }

    /// A manager writes a master.
    @discardableResult
    mutating func task(_ fields: String, _ id: UUID = UUID()) throws -> UUID {
        try put(.fieldTask, id, fields, in: .manager)
        return id
    }

    mutating func put(_ kind: Kind, _ id: UUID, _ fields: String, in path: RealmPath) throws {
        try acme.put([(id, fields)], kind, into: path)
    }

    /// As a device's patch does, once it is accepted.
    mutating func patch(_ id: UUID, _ fields: String, in path: RealmPath) throws {
        try TaskWorld.patch(id, fields, in: try acme.realm(path), of: acme.id, on: &acme.connection)
    }

    static func patch(
        _ id: UUID, _ fields: String, in realm: Int32, of environment: EnvironmentID, on connection: inout Connection
    ) throws {
        let key = ObjectKey(realm: realm, kind: .fieldTask, id: id)
        let stored = try RealmObject.stored(key, in: environment, on: &connection)
        var batch = WriteBatch(environment: environment)
        try batch.patch(stored, try CanonicalJSON(fields), decision: 0, isEdit: true)
        try #require(try batch.commit(on: &connection).missed.isEmpty)
    }

    // MARK: What follows

    /// - Parameter meanwhile: Runs between the next load and its commit.
    mutating func settle(meanwhile: ((inout Connection) throws -> Void)? = nil) throws {
        fanOut.meanwhile = meanwhile
        try fanOut.settle(in: acme.id, on: &acme.connection)
        #expect(fanOut.dead.isEmpty)
    }

    /// - Returns: How many positions were used.
    mutating func settleAgain() throws -> Int64 {
        let before = try position()
        fanOut.republish()
        try settle()
        return try position() - before
    }

    var missedCount: Int { fanOut.missedCount }

    private mutating func position() throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment WHERE id = \(acme.id.rawValue)")[0].value(0)
    }

    /// Where the task is: each place with its fields, the master first.
    mutating func places(_ task: UUID) throws -> [String: String] {
        let rows = try acme.connection.run(
            """
            SELECT r.path, o.fields FROM store.object o JOIN realm.realm r ON (r.environment_id, r.id)
                = (o.environment_id, o.realm_id)
            WHERE o.environment_id = \(acme.id.rawValue) AND o.kind = \(Kind.fieldTask) AND o.id = \(task)
                AND NOT o.deleted
            """)
        return Dictionary(uniqueKeysWithValues: try rows.decode(String.self, String.self).map { ($0, $1) })
    }

    /// The master and its copy, which say the same.
    mutating func master(_ task: UUID, hasCopyIn path: RealmPath?) throws -> FieldTask {
        let found = try places(task)
        let paths = ["/manager"] + (path.map { [$0.description] } ?? [])
        #expect(Set(found.keys) == Set(paths))
        #expect(Set(found.values).count == 1, "\(found)")
        let fields = try #require(found["/manager"])
        return try JSONDecoder().decode(FieldTask.self, from: Data(fields.utf8))
    }
}
