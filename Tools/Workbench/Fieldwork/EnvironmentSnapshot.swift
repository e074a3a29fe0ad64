import Access
import DeviceClient
import Essentials
import FoundationEssentials
import Model
import Postgres

/// All objects of an environment at one moment, and whose realm is whose.
struct EnvironmentSnapshot: Sendable {
    /// The objects of each realm.
    var realms: [RealmPath: RealmContent] = [:]
    /// The deleted objects whose deletion is stored.
    var deleted: [RealmPath: Set<ObjectID>] = [:]
    /// People's addresses by the ids of their `Person` objects.
    var emails: [UUID: String] = [:]
    /// Dead-lettered keys, with their reasons.
    var dead: [String] = []
    /// The environment's counter.
    var position: Int64 = 0
    /// The images to which objects of own kinds refer, as PostgreSQL's trigger stored them.
    var images: Set<UUID> = []
    /// Deferred keys, and changes to publish.
    var pending: [String] = []

    /// Reads it in one transaction.
    ///
    /// - Parameter pattern: Realms whose paths match it, as by SQL's `LIKE`, are left out.
    static func read(
        _ environment: EnvironmentID, except pattern: String = "", on connection: inout Connection
    ) throws -> EnvironmentSnapshot {
        var snapshot = EnvironmentSnapshot()
        let answers = try connection.transaction(.snapshot) { transaction in
            try transaction.run([
                """
                SELECT r.path, k.name, o.id, o.position, CASE WHEN NOT o.deleted THEN o.fields END FROM store.object o
                JOIN realm.kind k ON k.number = o.kind
                JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                WHERE o.environment_id = \(environment.rawValue) AND r.path NOT LIKE \(pattern)
                """,
                People.emails(in: environment),
                """
                SELECT key || ': ' || reason FROM pipeline.parked
                WHERE environment_id = \(environment.rawValue) AND is_dead
                """,
                "SELECT position FROM realm.environment WHERE id = \(environment.rawValue)",
                """
                SELECT 'deferred in ' || group_name || ': ' || key || ', ' || reason || ', due ' || next_at - now()
                FROM pipeline.parked WHERE environment_id = \(environment.rawValue) AND NOT is_dead
                UNION ALL
                SELECT 'to be republished: ' || topic FROM realm.republish
                WHERE environment_id = \(environment.rawValue)
                UNION ALL
                SELECT 'published up to ' || r.position || ' of ' || e.position
                FROM realm.environment e JOIN realm.relay r ON r.environment_id = e.id AND r.position < e.position
                WHERE e.id = \(environment.rawValue)
                """,
                """
                SELECT blob_id FROM blob.reference
                WHERE environment_id = \(environment.rawValue) AND kind >= \(OwnKind.numbers.lowerBound)
                """,
            ])
        }
        for (path, name, id, position, fields) in try answers[0].decode(
            String.self, String.self, UUID.self, Int64.self, CanonicalJSON?.self)
        {
            guard let path = RealmPath(path), let kind = Kind(named: name) else { continue }
            let object = ObjectID(kind: kind, id: id)
            guard let fields else {
                snapshot.deleted[path, default: []].insert(object)
                continue
            }
            snapshot.realms[path, default: [:]][object] = DeviceObject(position: position, fields: fields.bytes)
        }
        for (id, email) in try answers[1].decode(UUID.self, String.self) { snapshot.emails[id] = email }
        snapshot.dead = try answers[2].decode(String.self)
        snapshot.position = try answers[3][0].decode(Int64.self)
        snapshot.pending = try answers[4].decode(String.self)
        snapshot.images = Set(try answers[5].decode(UUID.self))
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
