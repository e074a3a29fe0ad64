import Backends
import FoundationEssentials
import Model
import Realms

/// A person's realm beside what the back end has of them.
struct Comparison {
    private(set) var problems: [(entry: UUID, text: String)] = []

    init(
        _ objects: [ObjectKey: RealmObject], _ records: [OfficeRecord], _ fates: Fates, data: ReportingData
    ) throws {
        var entries: [UUID: TimeEntry] = [:]
        var newest: [UUID: TimeEntryStatus] = [:]
        let decoder = JSONDecoder()
        for (key, object) in objects {
            if key.kind == .timeEntry { entries[key.id] = try object.decoded(as: TimeEntry.self, by: decoder) }
            guard key.kind == .timeEntryStatus, let line = try object.decoded(as: TimeEntryStatus.self, by: decoder)
            else { continue }
            if let other = newest[line.entry], other.timestamp > line.timestamp { continue }
            newest[line.entry] = line
        }
        var left = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
        for (id, entry) in entries.sorted(by: { $0.key.text < $1.key.text }) {
            check(id, entry, newest[id])
            guard let backendID = entry.backendId else { continue }
            if let record = left.removeValue(forKey: backendID) {
                check(id, entry, record, data)
            } else {
                problems.append((id, "\(id.text) is of the record \(backendID), which is not there, or is another's"))
            }
        }
        for record in left.values {
            let entry = record.marker.flatMap(EntryMarker.entry) ?? UUID.zero
            problems.append((entry, "record \(record.id) has no entry; its note is \(record.note)"))
        }
        check(Set(entries.keys), fates)
    }

    /// What nobody deleted is still there.
    private mutating func check(_ there: Set<UUID>, _ fates: Fates) {
        for id in fates.had.subtracting(there).subtracting(fates.deleted).sorted(by: { $0.text < $1.text }) {
            problems.append((id, "\(id.text) is gone, and nobody deleted it"))
        }
        for id in fates.dropped.intersection(there).sorted(by: { $0.text < $1.text }) {
            problems.append((id, "\(id.text) is there, and was deleted before any back end knew of it"))
        }
    }

    private mutating func check(_ id: UUID, _ entry: TimeEntry, _ line: TimeEntryStatus?) {
        func expect(_ condition: Bool, _ problem: String) {
            if !condition { problems.append((id, "\(id.text) \(problem)")) }
        }
        expect(entry.deleteRequested != true, "is to be deleted, and is there")
        if let line, line.status != .invalid || entry.status != .draft {
            // That its person made an invalid one a draft again is the device's own doing, which no line tells.
            expect(line.status == entry.status, "is \(entry.status), its log says \(line.status)")
        }
        switch entry.status {
        case .draft, .suggestion: expect(entry.submitRequested != true, "is to be submitted, and is a draft")
        case .submitted: expect(false, "is submitted for ever")
        case .invalid:
            expect(entry.backendId == nil && line?.message != nil, "is invalid, and has a record or no reason")
        case .released, .approved, .rejected, .recorded: expect(entry.backendId != nil, "has no record")
        }
    }

    private mutating func check(_ id: UUID, _ entry: TimeEntry, _ record: OfficeRecord, _ data: ReportingData) {
        func expect<Value: Equatable>(_ what: String, _ realm: Value, _ office: Value) {
            if realm != office {
                problems.append((id, "\(id.text): its \(what) is \(realm), in the back end \(office)"))
            }
        }
        expect("status", entry.status, record.status)
        expect("day", entry.entryDate, record.day)
        expect("length", EntryRules.seconds(of: entry).map(Hours.init(seconds:)), record.hours)
        expect("text", entry.text ?? "", record.text ?? "")
        expect("marker", record.marker.flatMap(EntryMarker.entry) ?? id, id)
        func nodes(_ selections: [ReportingSelection]) -> Set<UUID> { Set(selections.map(\.node)) }
        expect("reporting", nodes(entry.reporting), nodes(data.selections(for: record.references)))
    }
}
