import FoundationEssentials
import Model
import Postgres
import Realms

/// What one batch of decisions writes. An object that several of them would write is written by the first: the others'
/// next reading sees whether anything is left to be done.
struct DefectWrites {
    let environment: EnvironmentID
    private(set) var batch: WriteBatch
    private var written: Set<ObjectKey> = []
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

    /// A guard on another table; see `WriteBatch`.
    mutating func expect(_ statement: Statement) { batch.expect(statement) }

    /// Runs after the writes; see `WriteBatch`.
    mutating func also(_ statement: Statement) { batch.also(statement) }
}
