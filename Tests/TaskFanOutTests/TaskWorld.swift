import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import TaskFanOut

/// An environment with people and teams, and the handler that maintains its tasks.
struct TaskWorld: ~Copyable {
    var acme: TestEnvironment
    private var fanOut: Settling<TaskHandler>
    private var people: [String: UUID] = [:]

    init(
        retention: TaskRetention = TaskRetention(), now: @escaping @Sendable () -> Timestamp = { Timestamp.now() }
    ) throws {
        acme = try TestEnvironment()
        fanOut = Settling(TaskHandler(retention: retention, now: now), of: Services.taskFanOut)
    }

    // MARK: People

    mutating func person(_ name: String) throws -> UUID {
        if let id = people[name] { return id }
        let id = UUID()
        try acme.letIn(name, id)
        people[name] = id
        return id
    }

    /// Writes a master as a manager does.
    @discardableResult
    mutating func task(_ fields: String, _ id: UUID = UUID()) throws -> UUID {
        try put(.fieldTask, id, fields, in: .manager)
        return id
    }

    mutating func put(_ kind: Kind, _ id: UUID, _ fields: String, in path: RealmPath) throws {
        try acme.put([(id, fields)], kind, into: path)
    }

    /// Writes a patch as the gateway does for a device.
    mutating func patch(_ id: UUID, _ fields: String, kind: Kind = .fieldTask, in path: RealmPath) throws {
        try TaskWorld.patch(id, fields, kind: kind, in: try acme.realm(path), of: acme.id, on: &acme.connection)
    }

    static func patch(
        _ id: UUID, _ fields: String, kind: Kind = .fieldTask, in realm: Int32, of environment: EnvironmentID,
        on connection: inout Connection
    ) throws {
        let key = ObjectKey(realm: realm, kind: kind, id: id)
        let stored = try RealmObject.stored(key, in: environment, on: &connection)
        var batch = WriteBatch(environment: environment)
        try batch.patch(stored, try CanonicalJSON(fields), decision: 0, isEdit: true)
        try #require(try batch.commit(on: &connection).conflicts.isEmpty)
    }

    /// Records the author of a task's last change as the gateway does.
    mutating func recordAuthor(_ person: UUID?, of task: UUID) throws {
        let manager = try acme.realm(.manager)
        var authors = BinaryArray(of: UUID.self)
        authors.append(person)
        try acme.connection.run(
            """
            INSERT INTO device.task_author (environment_id, task_id, edit_position, author_id)
            SELECT o.environment_id, o.id, o.edit_position, a.id
            FROM store.object o CROSS JOIN unnest(\(authors)) AS a(id)
            WHERE o.environment_id = \(acme.id.rawValue) AND o.realm_id = \(manager) AND o.kind = \(Kind.fieldTask)
                AND o.id = \(task)
            """)
    }

    // MARK: Results

    /// Returns a person's notices, as `code: text`, sorted.
    mutating func notices(_ name: String) throws -> [String] {
        let realm = try acme.realm(.user("\(name)@example.com"))
        let rows = try acme.connection.run(
            """
            SELECT fields FROM store.object
            WHERE environment_id = \(acme.id.rawValue) AND realm_id = \(realm) AND kind = \(Kind.notice)
                AND NOT deleted
            """)
        return try rows.decode(String.self).map { json in
            let notice = try JSONDecoder().decode(Notice.self, from: Data(json.utf8))
            return "\(notice.code.rawValue): \(notice.text)"
        }.sorted()
    }

    /// - Parameter meanwhile: Runs between the next load and its commit.
    mutating func settle(meanwhile: ((inout Connection) throws -> Void)? = nil) throws {
        fanOut.meanwhile = meanwhile
        try fanOut.settle(in: acme.id, on: &acme.connection)
        #expect(fanOut.dead.isEmpty)
    }

    /// - Returns: The number of positions used.
    mutating func settleRepublished() throws -> Int64 {
        let before = try position()
        fanOut.republish()
        try settle()
        return try position() - before
    }

    /// Re-queues tasks whose due date has passed.
    ///
    /// - Returns: The number of re-queued tasks.
    mutating func sweep() throws -> Int {
        guard try acme.connection.run(TaskCascade.environmentsWithDueTasks).count > 0 else { return 0 }
        return Int(try acme.connection.run(TaskCascade.due(countMax: 100, in: acme.id)).affectedCount)
    }

    var missedCount: Int { fanOut.missedCount }

    private mutating func position() throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment WHERE id = \(acme.id.rawValue)")[0].value(0)
    }

    /// Returns the objects of the task, or of another kind, by realm.
    mutating func objectsByRealm(_ id: UUID, kind: Kind = .fieldTask) throws -> [String: String] {
        let rows = try acme.connection.run(
            """
            SELECT r.path, o.fields FROM store.object o JOIN realm.realm r ON (r.environment_id, r.id)
                = (o.environment_id, o.realm_id)
            WHERE o.environment_id = \(acme.id.rawValue) AND o.kind = \(kind) AND o.id = \(id)
                AND NOT o.deleted
            """)
        return Dictionary(uniqueKeysWithValues: try rows.decode(String.self, String.self).map { ($0, $1) })
    }

    /// Returns the master after a check that its copy is equal.
    mutating func master(_ task: UUID, hasCopyIn path: RealmPath?) throws -> FieldTask {
        let objects = try objectsByRealm(task)
        let paths = ["/manager"] + (path.map { [$0.description] } ?? [])
        #expect(Set(objects.keys) == Set(paths))
        #expect(Set(objects.values).count == 1, "\(objects)")
        let fields = try #require(objects["/manager"])
        return try JSONDecoder().decode(FieldTask.self, from: Data(fields.utf8))
    }
}
