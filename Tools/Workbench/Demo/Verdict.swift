import BackendProtocol
import Backends
import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// Compares, entry by entry, what a device shows, what its realm in PostgreSQL holds, and what the back end recorded.
///
/// A value without I/O: it is given all three, person by person, and the plans, and says where they differ.
struct Verdict: Sendable {
    /// One thing that is not as it should be.
    struct Difference: Equatable, Sendable, CustomStringConvertible {
        /// The person's e-mail address, or the back end's name of the person.
        let person: String
        /// The object, entry or record.
        let subject: String
        let detail: String

        var description: String { "\(person): \(subject): \(detail)" }
    }

    private(set) var differences: [Difference] = []
    /// Entries as they are in the realms.
    private(set) var statuses: [EntryStatus: Int] = [:]
    /// Invalid entries by what their status logs say.
    private(set) var reasons: [String: Int] = [:]
    /// Planned entries that ended as expected in realm and back end.
    private(set) var rightEntries: Set<UUID> = []
    /// How tasks and calendars ended.
    var fieldwork = Fieldwork()
    /// What people have of defects.
    var defects = Defects()
    /// Mistakes of which nothing is left.
    private(set) var goneCount = 0
    /// The records that count and belong to no entry seen so far, by marker.
    private var recordsByMarker: [String: [BackendRecord]] = [:]

    /// - Parameter records: All records of the back end. Those of other people than `people` are not looked at.
    init(of people: [Organisation.Person], records: [BackendRecord]) {
        let numbers = Set(people.map(\.personWorkAgreementExternalId))
        for record in records where record.isLive && numbers.contains(record.person) {
            if let marker = EntryMarker.split(note: record.note).marker {
                recordsByMarker[marker, default: []].append(record)
            } else {
                note(record.person, "record \(record.record)", "has no marker: \(record.note)")
            }
        }
    }

    var isClean: Bool { differences.isEmpty }

    mutating func note(_ person: String, _ subject: String, _ detail: String) {
        differences.append(Difference(person: person, subject: subject, detail: detail))
    }

    // MARK: Device and realm

    /// The device's copy of a realm must be the realm: the same objects, at the same positions, with the same fields.
    mutating func compare(_ person: String, _ path: RealmPath, device: RealmContent, stored: RealmContent) {
        for id in Set(device.keys).union(stored.keys).sorted() {
            let subject = "\(id) in \(path)"
            switch (device[id], stored[id]) {
            case (nil, nil): break
            case (.some, nil): note(person, subject, "the device has it, PostgreSQL does not")
            case (nil, .some): note(person, subject, "PostgreSQL has it, the device does not")
            case (.some(let held), .some(let stored)):
                if held.position != stored.position {
                    note(person, subject, "position \(held.position) on the device, \(stored.position) in PostgreSQL")
                } else if !JSONValue.areEqual(held.fields, stored.fields) {
                    let fields = JSONValue.differingFields(held.fields, stored.fields).joined(separator: ", ")
                    note(person, subject, "other fields on the device than in PostgreSQL: \(fields)")
                }
            }
        }
    }

    // MARK: Realm and back end

    /// Every entry must have ended as planned, and have exactly the records that follow from that.
    mutating func compare(_ person: Organisation.Person, _ plans: [EntryPlan], realm: RealmContent) {
        let logs = Self.logs(in: realm)
        check(logs, of: person, realm)
        var unplanned = Set(realm.keys.lazy.filter { $0.kind == .timeEntry }.map(\.id))
        for plan in plans {
            let records = recordsByMarker.removeValue(forKey: EntryMarker.marker(of: plan.id)) ?? []
            let object = realm[ObjectID(kind: .timeEntry, id: plan.id)]
            unplanned.remove(plan.id)
            let before = differences.count
            check(plan, of: person, object, (logs[plan.id] ?? []).compactMap(\.message).sorted(), records)
            guard differences.count == before else { continue }
            if plan.variant.isMistake { goneCount += 1 } else { rightEntries.insert(plan.id) }
        }
        for id in unplanned.sorted(by: { $0.text < $1.text }) {
            note(person.email, "entry \(id.text)", "is in the realm, and nobody wrote it")
        }
    }

    /// After all people: no record may be left over.
    mutating func finish() {
        for record in recordsByMarker.values.joined().sorted(by: { $0.record < $1.record }) {
            note(record.person, "record \(record.record)", "belongs to no entry: \(record.note)")
        }
        recordsByMarker = [:]
    }

    /// What the devices themselves could not bring to its end.
    mutating func add(failures: [UUID: String]) {
        for (id, reason) in failures.sorted(by: { $0.key.text < $1.key.text }) {
            note("device", "entry \(id.text)", reason)
        }
    }

    private mutating func check(
        _ plan: EntryPlan, of person: Organisation.Person, _ object: HeldObject?, _ messages: [String],
        _ records: [BackendRecord]
    ) {
        let subject = "entry \(plan.id.text)"
        if let entry = object.flatMap({ SeenEntry($0) }) {
            statuses[entry.status, default: 0] += 1
            if entry.status == .invalid {
                for message in Set(messages.map(Self.reason)) { reasons[message, default: 0] += 1 }
            }
        }
        if plan.variant.isMistake {
            if object != nil { note(person.email, subject, "was deleted, and is still in the realm") }
            checkNone(records, person, subject, "was deleted")
            return
        }
        guard let object, let entry = try? JSONDecoder().decode(TimeEntry.self, from: Data(object.fields)) else {
            note(person.email, subject, object == nil ? "is not in the realm" : "cannot be read in the realm")
            return
        }
        checkFields(entry, plan, person, subject)
        switch plan.entry.expectation {
        case .released:
            if entry.status != .released {
                let said = messages.isEmpty ? "" : " (\(messages.joined(separator: "; ")))"
                note(person.email, subject, "is \(entry.status.rawValue), not released\(said)")
            }
            checkOne(records, plan, entry, person, subject)
        case .invalid(let reason):
            if entry.status != .invalid {
                note(person.email, subject, "is \(entry.status.rawValue), not invalid")
            } else if !messages.contains(where: { $0.contains(reason.rawValue) }) {
                let said = messages.isEmpty ? "nothing" : messages.joined(separator: "; ")
                note(person.email, subject, "its log says \(said), not '\(reason.rawValue)'")
            }
            checkNone(records, person, subject, "is invalid")
        }
    }

    private mutating func checkFields(
        _ entry: TimeEntry, _ plan: EntryPlan, _ person: Organisation.Person, _ subject: String
    ) {
        let planned: [(String, String, String)] = [
            ("text", entry.text ?? "", plan.text),
            ("date", entry.entryDate?.description ?? "", plan.entry.day.description),
            ("seconds", entry.durationSeconds.map(String.init) ?? "", String(plan.entry.durationSeconds)),
        ]
        for (name, found, wanted) in planned where found != wanted {
            note(person.email, subject, "\(name) '\(found)' in the realm, '\(wanted)' was written")
        }
    }

    private mutating func checkNone(
        _ records: [BackendRecord], _ person: Organisation.Person, _ subject: String, _ reason: String
    ) {
        for record in records {
            note(person.email, subject, "\(reason), and the back end has record \(record.record)")
        }
    }

    private mutating func checkOne(
        _ records: [BackendRecord], _ plan: EntryPlan, _ entry: TimeEntry, _ person: Organisation.Person,
        _ subject: String
    ) {
        guard let record = records.first, records.count == 1 else {
            let numbers = records.map(\.record).joined(separator: ", ")
            note(
                person.email, subject,
                records.isEmpty ? "the back end has no record of it" : "the back end has it more than once: \(numbers)")
            return
        }
        let compared: [(String, String, String)] = [
            ("number", record.record, entry.backendId ?? ""),
            ("person", record.person, person.personWorkAgreementExternalId),
            ("company code", record.companyCode, person.companyCode),
            ("date", record.date.description, plan.entry.day.description),
            ("hours", record.hours, Hours(seconds: plan.entry.durationSeconds).description),
            ("WBS element", record.wbsElement, plan.entry.accountingCode),
            ("note", record.note, EntryMarker.note(text: plan.text, marker: EntryMarker.marker(of: plan.id))),
        ]
        for (name, found, wanted) in compared where found != wanted {
            note(person.email, subject, "record \(record.record): \(name) '\(found)', not '\(wanted)'")
        }
    }

    // MARK: Status logs

    private static func logs(in realm: RealmContent) -> [UUID: [TimeEntryStatus]] {
        var logs: [UUID: [TimeEntryStatus]] = [:]
        for (id, object) in realm where id.kind == .timeEntryStatus {
            guard let line = try? JSONDecoder().decode(TimeEntryStatus.self, from: Data(object.fields)) else {
                continue
            }
            logs[line.entry, default: []].append(line)
        }
        return logs
    }

    /// The newest line of every entry says the entry's status, and no line is of an entry that is gone.
    private mutating func check(
        _ logs: [UUID: [TimeEntryStatus]], of person: Organisation.Person, _ realm: RealmContent
    ) {
        var left = logs
        for (id, object) in realm where id.kind == .timeEntry {
            let lines = left.removeValue(forKey: id.id) ?? []
            guard let entry = try? JSONDecoder().decode(TimeEntry.self, from: Data(object.fields)),
                let objection = TimeEntryStatus.objection(to: lines, of: entry)
            else { continue }
            note(person.email, "entry \(id.id.text)", "is \(entry.status.rawValue), and of its log: \(objection)")
        }
        for id in left.keys.sorted(by: { $0.text < $1.text }) {
            note(person.email, "entry \(id.text)", "is not in the realm, and has a status log")
        }
    }

    /// A message without what differs from entry to entry: names and dates.
    private static func reason(_ message: String) -> String {
        message.split(separator: " ").map { word in
            word.contains(where: \.isNumber) && word.contains { $0.isLetter || $0 == "-" } ? "…" : word
        }.joined(separator: " ")
    }
}
