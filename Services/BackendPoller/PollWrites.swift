import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The writes of a batch of polls; an object that several polls write is written once.
struct PollWrites {
    /// The people's reporting data as read from the back end.
    var observedChoices: [PollHandler.ObservedChoices] = []
    /// Number of objects written so far.
    var count: Int { written.count }
    private var written: Set<ObjectKey> = []
    private var puts: [(key: ObjectKey, fields: CanonicalJSON, decision: Int)] = []
    private var patches: [(object: RealmObject, fields: CanonicalJSON, decision: Int)] = []
    private var deletions: [(key: ObjectKey, decision: Int)] = []
    private let encoder = JSONEncoder()

    func has(_ key: ObjectKey) -> Bool { written.contains(key) }

    mutating func put(_ realm: Int32, _ kind: Kind, _ id: UUID, _ fields: some Encodable, _ decision: Int) throws {
        put(realm, kind, id, json: try CanonicalJSON(encoding: fields, by: encoder), decision)
    }

    mutating func put(_ realm: Int32, _ kind: Kind, _ id: UUID, json fields: CanonicalJSON, _ decision: Int) {
        let key = ObjectKey(realm: realm, kind: kind, id: id)
        guard written.insert(key).inserted else { return }
        puts.append((key, fields, decision))
    }

    mutating func patch(_ object: RealmObject, _ fields: some Encodable, _ decision: Int) throws {
        guard written.insert(object.key).inserted else { return }
        patches.append((object, try CanonicalJSON(encoding: fields, by: encoder), decision))
    }

    mutating func delete(_ realm: Int32, _ kind: Kind, _ id: UUID, _ decision: Int) {
        let key = ObjectKey(realm: realm, kind: kind, id: id)
        guard written.insert(key).inserted else { return }
        deletions.append((key, decision))
    }

    func write(to batch: inout WriteBatch) throws {
        for (key, fields, decision) in puts { batch.put(key, fields, decision: decision) }
        for (object, fields, decision) in patches { try batch.patch(object, fields, decision: decision) }
        for (key, decision) in deletions { batch.delete(key, decision: decision) }
    }
}
