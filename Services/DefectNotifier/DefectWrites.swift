import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What one batch of decisions writes. An object that several of them would write is written by the first: the others'
/// next reading sees whether anything is left to be done.
struct DefectWrites {
    let environment: EnvironmentID
    private(set) var batch: WriteBatch
    private var written: Set<ObjectKey> = []
    private var seen: Set<UUID> = []
    private let encoder = JSONEncoder()

    init(_ batch: WriteBatch) { (environment, self.batch) = (batch.environment, batch) }

    func has(_ key: ObjectKey) -> Bool { written.contains(key) }

    /// The decision stands only while the object is where it was loaded; 0: it was not there.
    mutating func expect(_ key: ObjectKey, at position: Int64, _ decision: Int) {
        batch.expect(key, at: position, decision: decision)
    }

    /// - Parameter position: Where it was loaded; 0: it was not there.
    mutating func put(_ key: ObjectKey, at position: Int64, _ fields: some Encodable, _ decision: Int) throws {
        written.insert(key)
        batch.expect(key, at: position, decision: decision)
        batch.put(key, try CanonicalJSON(encoding: fields, by: encoder), decision: decision)
    }

    mutating func delete(_ key: ObjectKey, at position: Int64, _ decision: Int) {
        written.insert(key)
        batch.expect(key, at: position, decision: decision)
        batch.delete(key, decision: decision)
    }

    /// Replaces some fields of an object that was loaded.
    mutating func patch(_ object: RealmObject, _ fields: some Encodable, _ decision: Int) throws {
        guard written.insert(object.key).inserted else { return }
        try batch.patch(object, try CanonicalJSON(encoding: fields, by: encoder), decision: decision)
    }

    /// Remembers rows of the history that a decision of this batch has read.
    ///
    /// - Returns: Whether none had before.
    mutating func see(_ row: UUID) -> Bool { seen.insert(row).inserted }

    /// A guard on another table; see `WriteBatch`.
    mutating func expect(_ statement: Statement) { batch.expect(statement) }

    /// Runs after the writes; see `WriteBatch`.
    mutating func also(_ statement: Statement) { batch.also(statement) }
}
