import FoundationEssentials
import Model
import Postgres
import Realms

/// Collects what a batch of polls writes; an object that several of them write is written once.
struct PollWrites {
    /// What people may report on, as it was read.
    var readings: [PollHandler.Reading] = []
    /// Objects written so far.
    var count: Int { written.count }
    private var written: Set<ObjectKey> = []
    private var puts: [(key: ObjectKey, fields: JSONBytes, decision: Int)] = []
    private var patches: [(key: ObjectKey, fields: JSONBytes, decision: Int)] = []
    private var deletions: [(key: ObjectKey, decision: Int)] = []
    private let encoder = JSONEncoder()

    func has(_ key: ObjectKey) -> Bool { written.contains(key) }

    mutating func put(_ realm: Int32, _ kind: Kind, _ id: UUID, _ fields: some Encodable, _ decision: Int) throws {
        put(realm, kind, id, json: JSONBytes([UInt8](try encoder.encode(fields))), decision)
    }

    mutating func put(_ realm: Int32, _ kind: Kind, _ id: UUID, json fields: JSONBytes, _ decision: Int) {
        let key = ObjectKey(realm: realm, kind: kind, id: id)
        guard written.insert(key).inserted else { return }
        puts.append((key, fields, decision))
    }

    mutating func patch(_ realm: Int32, _ kind: Kind, _ id: UUID, _ fields: some Encodable, _ decision: Int) throws {
        let key = ObjectKey(realm: realm, kind: kind, id: id)
        guard written.insert(key).inserted else { return }
        patches.append((key, JSONBytes([UInt8](try encoder.encode(fields))), decision))
    }

    mutating func delete(_ realm: Int32, _ kind: Kind, _ id: UUID, _ decision: Int) {
        let key = ObjectKey(realm: realm, kind: kind, id: id)
        guard written.insert(key).inserted else { return }
        deletions.append((key, decision))
    }

    func write(to batch: inout WriteBatch) {
        for (key, fields, decision) in puts { batch.put(key, fields, decision: decision) }
        for (key, fields, decision) in patches { batch.patch(key, fields, decision: decision) }
        for (key, decision) in deletions { batch.delete(key, decision: decision) }
    }
}
