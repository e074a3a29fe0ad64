import Backends
import FoundationEssentials
import Model

/// What a complete read of a person's records changes about what was seen before.
enum PollRule {
    struct Changes: Equatable {
        var put: [UUID: SeenRecord] = [:]
        var gone: Set<UUID> = []
        /// Ids that several records claim by their markers.
        var ambiguous: Set<UUID> = []
    }

    /// - Parameters:
    ///   - known: What was seen before, tombstones left out.
    ///   - found: All live records of `days`.
    static func changes(
        known: [UUID: SeenRecord], found: [BackendEntry], days: ClosedRange<Day>, email: String
    ) -> Changes {
        var changes = Changes()
        var records: [UUID: SeenRecord] = [:]
        for entry in found {
            let id = RealmContents.entryID(of: entry, of: email)
            let record = SeenRecord(entry)
            guard let other = records[id] else {
                records[id] = record
                continue
            }
            // Somebody copied a record with its note: the one that was there stays, else the older.
            changes.ambiguous.insert(id)
            if other.backendId == known[id]?.backendId { continue }
            if record.backendId == known[id]?.backendId || record.backendId < other.backendId { records[id] = record }
        }
        changes.put = records.filter { known[$0.key] != $0.value }
        // Of other days nothing was read.
        changes.gone = Set(known.filter { records[$0.key] == nil && days.contains($0.value.day) }.keys)
        return changes
    }

    /// What differs between what is stored and what is wanted.
    struct Differences<Fields: Equatable> {
        var put: [Identified<Fields>]
        var gone: [UUID]

        init(stored: [UUID: Fields], wanted: [Identified<Fields>]) {
            put = wanted.filter { stored[$0.id] != $0.fields }
            gone = Set(stored.keys).subtracting(wanted.map(\.id)).sorted { $0.text < $1.text }
        }
    }
}
