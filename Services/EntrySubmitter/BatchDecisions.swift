import FoundationEssentials
import Model
import ObjectStore

/// The stored state that the inputs of a batch concern.
struct LoadedBatch {
    /// The entry of each input; `nil` if its realm does not exist.
    let keys: [ObjectKey?]
    /// The observation of each input that is one.
    let observationKeys: [ObjectKey?]
    let objects: [ObjectKey: RealmObject]
    let ledgers: [UUID: EntryStore.StoredLedger]
    let restore: Restore?
}

/// The decisions of a batch so far.
struct BatchDecisions {
    var writes = EntryWrites()
    /// Realms whose entry gets the ledger row of an id in this batch.
    var ledgerRealms: [UUID: Int32] = [:]
    var unchanged: [EntryHandler.Unchanged] = []
    private var decided: Set<ObjectKey> = []

    /// Marks an entry as decided.
    ///
    /// - Returns: The reason why it cannot be decided in this batch; `nil` if it can.
    mutating func conflict(of key: ObjectKey) -> String? {
        // The commit of this batch determines the owner of the id.
        if let realm = ledgerRealms[key.id], realm != key.realm { return "another entry has the same id" }
        return decided.insert(key).inserted ? nil : "the entry is being decided"
    }
}
