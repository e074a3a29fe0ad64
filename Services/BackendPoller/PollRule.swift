import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model

/// Determines the changes of a person's records since they were last observed.
enum PollRule {
    struct Changes: Equatable {
        var put: [UUID: SeenRecord] = [:]
        var gone: Set<UUID> = []
        /// Ids of entries whose marker several records carry.
        var ambiguous: Set<UUID> = []
    }

    /// Compares all records of a person.
    ///
    /// - Parameters:
    ///   - known: The observations so far, without tombstones.
    ///   - found: All live records of `days`.
    ///   - entries: The person's entries that have not changed since before the records were read. An unchanged record
    ///     is reported again if its entry contradicts it, because the entry may have been in another state when the
    ///     record was processed. A missing record without an observation is reported as cancelled.
    ///   - repeated: Entries whose record is reported again although it equals its observation.
    ///   - isWhole: Whether all records could be read. Otherwise missing records prove nothing.
    static func changes(
        known: [UUID: SeenRecord], found: [BackendEntry], days: ClosedRange<Day>, email: String,
        entries: [UUID: TimeEntry] = [:], repeated: Set<UUID> = [], run: Int64 = 0, isWhole: Bool = true
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
            // A person copied a record with its note: the observed record is kept, otherwise the older one.
            changes.ambiguous.insert(id)
            if other.backendId == known[id]?.backendId { continue }
            if record.backendId == known[id]?.backendId || record.backendId < other.backendId { records[id] = record }
        }
        for (id, entry) in entries where isWhole && records[id] == nil {
            // An observed record becomes a tombstone, which reports the deletion.
            guard let backendID = entry.backendId, let day = entry.entryDate, days.contains(day),
                !entry.status.isClosed, known[id].map({ $0.status == BackendStatus.cancelled.rawValue }) ?? true
            else { continue }
            records[id] = SeenRecord(
                backendId: backendID, marker: nil, day: day, durationSeconds: 0, text: nil,
                status: BackendStatus.cancelled.rawValue, references: [:])
        }
        for (id, record) in records {
            var record = record
            record.toldRun = known[id]?.toldRun
            if known[id] == record, let entry = entries[id],
                repeated.contains(id) || isContradicted(record, by: entry)
            {
                record.toldRun = run
            }
            if known[id] != record { changes.put[id] = record }
        }
        // Other days were not read.
        if isWhole {
            changes.gone = Set(known.filter { records[$0.key] == nil && days.contains($0.value.day) }.keys)
        }
        return changes
    }

    /// Compares records that a back end reported as changed. The absence of others proves nothing.
    ///
    /// A record is followed on the days of a full comparison, and on any day that it moves to. Its content decides
    /// whether it has changed, not its version: an equal version may hide a change, and a new version need not contain
    /// one. Of several records with one marker, the full comparison selects one.
    ///
    /// - Parameter known: The observations of these records so far, without tombstones.
    static func updates(
        known: [UUID: SeenRecord], reported: [BackendEntry], days: ClosedRange<Day>, email: String
    ) -> [UUID: SeenRecord] {
        var updates: [UUID: SeenRecord] = [:]
        for entry in reported {
            let id = RealmContents.entryID(of: entry, of: email)
            let before = updates[id] ?? known[id]
            guard days.contains(entry.day) || before != nil else { continue }
            if let before, before.backendId != entry.id, before.status != BackendStatus.cancelled.rawValue { continue }
            var record = SeenRecord(entry)
            record.toldRun = before?.toldRun
            if record != before { updates[id] = record }
        }
        return updates
    }

    /// Returns whether the entry contradicts the fields that only the back end decides.
    private static func isContradicted(_ record: SeenRecord, by entry: TimeEntry) -> Bool {
        if entry.status.isClosed { return false }
        switch BackendStatus(rawValue: record.status).flatMap(EntryStatus.init(observed:)) {
        case nil: return entry.backendId != nil
        case .draft: return entry.backendId != record.backendId
        case let status: return entry.status != status || entry.backendId != record.backendId
        }
    }

    /// Returns a person's nodes if rows of the back end's lists are unreadable: stored nodes and dependencies are kept,
    /// because they may originate from such a row.
    ///
    /// - Parameter stored: The person's nodes so far.
    static func nodes(
        _ found: [Identified<ReportingTreeNode>], keeping stored: [UUID: ReportingTreeNode]
    ) -> [Identified<ReportingTreeNode>] {
        let ids = Set(found.map(\.id))
        let changed = found.map { node in
            guard let storedNode = stored[node.id] else { return node }
            var node = node
            if let parent = storedNode.parent, !ids.contains(parent) { node.fields.parent = parent }
            let dependencies = Set(node.fields.dependencies)
            // A node without dependencies can always be selected.
            node.fields.dependencies =
                dependencies.isEmpty || storedNode.dependencies.isEmpty
                ? [] : node.fields.dependencies + storedNode.dependencies.filter { !dependencies.contains($0) }
            node.fields.hasDependencies = !node.fields.dependencies.isEmpty
            return node
        }
        let removed = stored.keys.filter { !ids.contains($0) }.sorted { $0.text < $1.text }
        return changed + removed.compactMap { id in stored[id].map { Identified(id: id, fields: $0) } }
    }

    /// The differences between stored and desired objects.
    struct Differences<Fields: Equatable> {
        var put: [Identified<Fields>]
        var gone: [UUID]

        init(stored: [UUID: Fields], desired: [Identified<Fields>]) {
            put = desired.filter { stored[$0.id] != $0.fields }
            gone = Set(stored.keys).subtracting(desired.map(\.id)).sorted { $0.text < $1.text }
        }
    }
}
