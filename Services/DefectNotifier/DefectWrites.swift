import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The writes of one batch of decisions. If several decisions would write one object, the first one does. The next poll
/// of the others covers the rest.
struct DefectWrites {
    var batch: WriteBatch
    private var written: Set<ObjectKey> = []
    private var processed: Set<UUID> = []
    private let encoder = JSONEncoder()

    init(_ batch: WriteBatch) { self.batch = batch }

    func contains(_ key: ObjectKey) -> Bool { written.contains(key) }

    /// - Parameter position: The object's position when it was loaded; 0: it did not exist.
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

    /// Replaces some fields of a loaded object.
    mutating func patch(_ object: RealmObject, _ fields: some Encodable, _ decision: Int) throws {
        guard written.insert(object.key).inserted else { return }
        try batch.patch(object, try CanonicalJSON(encoding: fields, by: encoder), decision: decision)
    }

    /// Marks a row of the history as processed in this batch.
    ///
    /// - Returns: Whether it was not marked before.
    mutating func markProcessed(_ row: UUID) -> Bool { processed.insert(row).inserted }
}
