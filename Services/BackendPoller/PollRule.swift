import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model

/// What was read of a person's records changes about what was seen before.
enum PollRule {
    struct Changes: Equatable {
        var put: [UUID: SeenRecord] = [:]
        var gone: Set<UUID> = []
        /// Ids that several records claim by their markers.
        var ambiguous: Set<UUID> = []
    }

    /// Compares all of a person's records.
    ///
    /// - Parameters:
    ///   - known: What was seen before, tombstones left out.
    ///   - found: All live records of `days`.
    ///   - entries: The person's entries that have not changed since before the records were read. One that says
    ///     something else than its record, though the record is as it was, is told again: when the record was judged,
    ///     it may have been otherwise for a moment. So is one whose record was never seen, and is not there.
    ///   - unresolved: Entries that do not say what they are about, although it can be told now.
    ///   - isWhole: Whether every record could be read. If not, nothing is concluded from what is missing.
    static func changes(
        known: [UUID: SeenRecord], found: [BackendEntry], days: ClosedRange<Day>, email: String,
        entries: [UUID: TimeEntry] = [:], unresolved: Set<UUID> = [], run: Int64 = 0, isWhole: Bool = true
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
        for (id, entry) in entries where isWhole && records[id] == nil {
            // A record that was seen before becomes a tombstone, which tells it.
            guard let backendID = entry.backendId, let day = entry.entryDate, days.contains(day),
                !entry.status.isClosed,
                known[id].map({ $0.status == BackendStatus.cancelled.rawValue }) ?? true
            else { continue }
            records[id] = SeenRecord(
                backendId: backendID, marker: nil, day: day, durationSeconds: 0, text: nil,
                status: BackendStatus.cancelled.rawValue, references: [:])
        }
        for (id, record) in records {
            var record = record
            record.toldRun = known[id]?.toldRun
            if known[id] == record, let entry = entries[id],
                unresolved.contains(id) || isContradicted(record, by: entry)
            {
                record.toldRun = run
            }
            if known[id] != record { changes.put[id] = record }
        }
        // Of other days nothing was read.
        if isWhole {
            changes.gone = Set(known.filter { records[$0.key] == nil && days.contains($0.value.day) }.keys)
        }
        return changes
    }

    /// Compares records that were told to have changed. Of the others nothing is concluded.
    ///
    /// A record is followed on the days that a full comparison reads, and to whatever day it moves from there. Whether
    /// it differs is seen by what it says: its version may be the same though it was changed, or another though it was
    /// not. Which of several records with one marker counts is left to the comparison that sees all of them.
    ///
    /// - Parameter known: What was seen before of these records, tombstones left out.
    static func news(
        known: [UUID: SeenRecord], told: [BackendEntry], days: ClosedRange<Day>, email: String
    ) -> [UUID: SeenRecord] {
        var news: [UUID: SeenRecord] = [:]
        for entry in told {
            let id = RealmContents.entryID(of: entry, of: email)
            let before = news[id] ?? known[id]
            guard days.contains(entry.day) || before != nil else { continue }
            if let before, before.backendId != entry.id, before.status != BackendStatus.cancelled.rawValue { continue }
            var record = SeenRecord(entry)
            record.toldRun = before?.toldRun
            if record != before { news[id] = record }
        }
        return news
    }

    /// Whether the entry says something else of what the back end alone decides.
    private static func isContradicted(_ record: SeenRecord, by entry: TimeEntry) -> Bool {
        if entry.status.isClosed { return false }
        switch BackendStatus(rawValue: record.status).flatMap(EntryStatus.init(observed:)) {
        case nil: return entry.backendId != nil
        case .draft: return entry.backendId != record.backendId
        case let status: return entry.status != status || entry.backendId != record.backendId
        }
    }

    /// The nodes that a person can choose if rows of the back end's lists cannot be read: nothing that is stored is
    /// lost, neither a node nor a dependency of one, since it may be made of such a row.
    ///
    /// - Parameter stored: The nodes that the person could choose before.
    static func nodes(
        _ found: [Identified<ReportingTreeNode>], keeping stored: [UUID: ReportingTreeNode]
    ) -> [Identified<ReportingTreeNode>] {
        let ids = Set(found.map(\.id))
        let changed = found.map { node in
            guard let known = stored[node.id] else { return node }
            var node = node
            if let parent = known.parent, !ids.contains(parent) { node.fields.parent = parent }
            let dependencies = Set(node.fields.dependencies)
            // A node without dependencies can always be chosen.
            node.fields.dependencies =
                dependencies.isEmpty || known.dependencies.isEmpty
                ? [] : node.fields.dependencies + known.dependencies.filter { !dependencies.contains($0) }
            node.fields.hasDependencies = !node.fields.dependencies.isEmpty
            return node
        }
        let kept = stored.keys.filter { !ids.contains($0) }.sorted { $0.text < $1.text }
        return changed + kept.compactMap { id in stored[id].map { Identified(id: id, fields: $0) } }
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
