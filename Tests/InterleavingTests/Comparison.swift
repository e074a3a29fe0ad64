import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import ObjectStore

@testable import EntrySubmitter

/// Compares a person's realm with the back end's records.
struct Comparison {
    private(set) var problems: [(entry: UUID, text: String)] = []

    init(
        _ objects: [ObjectKey: RealmObject], _ records: [OfficeRecord], _ fates: Fates, data: ReportingData
    ) throws {
        var entries: [UUID: TimeEntry] = [:]
        var logs: [UUID: [TimeEntryStatus]] = [:]
        let decoder = JSONDecoder()
        for (key, object) in objects {
            if key.kind == .timeEntry { entries[key.id] = try object.decoded(as: TimeEntry.self, by: decoder) }
            guard key.kind == .timeEntryStatus, let line = try object.decoded(as: TimeEntryStatus.self, by: decoder)
            else { continue }
            logs[line.entry, default: []].append(line)
        }
        var left = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
        for (id, entry) in entries.sorted(by: { $0.key.text < $1.key.text }) {
            check(id, entry, logs.removeValue(forKey: id) ?? [])
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
        for id in logs.keys { problems.append((id, "\(id.text) is gone, and its log is not")) }
        check(Set(entries.keys), fates)
    }

    /// Entries that were not deleted still exist.
    private mutating func check(_ there: Set<UUID>, _ fates: Fates) {
        for id in fates.had.subtracting(there).subtracting(fates.deleted).sorted(by: { $0.text < $1.text }) {
            problems.append((id, "\(id.text) is missing, but was not deleted"))
        }
        for id in fates.dropped.intersection(there).sorted(by: { $0.text < $1.text }) {
            problems.append((id, "\(id.text) exists, but was deleted before any back end had it"))
        }
    }

    private mutating func check(_ id: UUID, _ entry: TimeEntry, _ lines: [TimeEntryStatus]) {
        func expect(_ condition: Bool, _ problem: String) {
            if !condition { problems.append((id, "\(id.text) \(problem)")) }
        }
        expect(entry.deleteRequested != true, "is to be deleted, and is there")
        let objection = TimeEntryStatus.objection(to: lines, of: entry)
        expect(objection == nil, "is \(entry.status), and of its log: \(objection ?? "")")
        let line = lines.max { $0.timestamp < $1.timestamp }
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
        expect("length", entry.seconds.map(Hours.init(seconds:)), record.hours)
        expect("text", entry.text ?? "", record.text ?? "")
        expect("marker", record.marker.flatMap(EntryMarker.entry) ?? id, id)
        func nodes(_ selections: [ReportingSelection]) -> Set<UUID> { Set(selections.map(\.node)) }
        expect("reporting", nodes(entry.reporting), nodes(data.selections(for: record.references)))
    }
}
