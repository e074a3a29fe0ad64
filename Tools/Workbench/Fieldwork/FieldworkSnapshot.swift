import Access
import DeviceClient
import Essentials
import FoundationEssentials
import Model
import Postgres

/// All objects of an environment at one moment, and whose realm is whose.
struct FieldworkSnapshot: Sendable {
    /// The objects of each realm.
    var realms: [RealmPath: RealmContent] = [:]
    /// The deleted objects whose deletion is stored.
    var deleted: [RealmPath: Set<ObjectID>] = [:]
    /// People's addresses by the ids of their `Person` objects.
    var emails: [UUID: String] = [:]
    /// Dead-lettered keys, with their reasons.
    var dead: [String] = []

    /// The kinds that ``FieldworkReading`` reads.
    static let kinds: [Kind] = [
        .appointment, .fieldTask, .location, .membership, .note, .person, .share, .sharedItem, .team, .user,
    ]

    /// Reads it in one transaction.
    ///
    /// - Parameter kinds: Objects of others are left out.
    static func read(
        _ environment: EnvironmentID, kinds: [Kind] = Kind.allCases, on connection: inout Connection
    ) throws -> FieldworkSnapshot {
        var snapshot = FieldworkSnapshot()
        let answers = try connection.run([
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            """
            SELECT r.path, o.kind, o.id, o.position, CASE WHEN NOT o.deleted THEN o.fields END FROM store.object o
            JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            WHERE o.environment_id = \(environment.rawValue) AND o.kind = ANY (\(kinds))
            """,
            People.emails(in: environment),
            """
            SELECT key || ': ' || reason FROM pipeline.parked
            WHERE environment_id = \(environment.rawValue) AND is_dead
            """,
        ])
        for (path, number, id, position, fields) in try answers[1].decode(
            String.self, Int16.self, UUID.self, Int64.self, CanonicalJSON?.self)
        {
            guard let path = RealmPath(path), let kind = Kind(number: number) else { continue }
            let object = ObjectID(kind: kind, id: id)
            guard let fields else {
                snapshot.deleted[path, default: []].insert(object)
                continue
            }
            snapshot.realms[path, default: [:]][object] = DeviceObject(position: position, fields: fields.bytes)
        }
        for (id, email) in try answers[2].decode(UUID.self, String.self) { snapshot.emails[id] = email }
        snapshot.dead = try answers[3].decode(String.self)
        return snapshot
    }

    /// The masters of tasks, by id: those of long ago too.
    var masters: [UUID: JSONObject] {
        objects(.fieldTask, in: .manager).merging(objects(.fieldTask, in: .archive)) { first, _ in first }
    }

    /// Whether an object is in a realm, or was.
    func contains(_ object: ObjectID, in path: RealmPath) -> Bool {
        realms[path]?[object] != nil || deleted[path]?.contains(object) ?? false
    }

    /// The fields of the objects of a kind in a realm.
    func objects(_ kind: Kind, in path: RealmPath) -> [UUID: JSONObject] {
        var objects: [UUID: JSONObject] = [:]
        for (object, held) in realms[path] ?? [:] where object.kind == kind {
            objects[object.id] = try? JSONObject(held.fields)
        }
        return objects
    }
}
