import BackendProtocol
import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// Compares each entry on a device, in its realm in PostgreSQL, and in the back end.
///
/// A value without I/O: it receives the three sides and the plans of each person, and reports differences.
struct Verdict: Sendable {
    /// A difference.
    struct Difference: Equatable, Sendable, CustomStringConvertible {
        /// The person's e-mail address, or the back end's reference of the person.
        let person: String
        /// The object, entry or record.
        let subject: String
        let detail: String

        var description: String { "\(person): \(subject): \(detail)" }
    }

    /// Counts with their names in the report, in its order.
    enum Count: String, CaseIterable {
        case teams
        case completed = "tasks completed"
        case open = "tasks open"
        case referred = "tasks without their team"
        case cancelled = "tasks deleted"
        case withoutCoordinates = "of all tasks without coordinates"
        case positions = "last positions"
        case appointments
        case shares = "shares of them"
        case notices = "notices of defects"
        case entryNotices = "notices of invalid entries"
        case mirrors = "defects mirrored"
        /// Commands from devices.
        case commands = "changes of defects from devices"

        /// The counts of tasks and calendars, which every report has.
        static let fieldwork: [Count] = [
            .teams, .completed, .open, .referred, .cancelled, .withoutCoordinates, .positions, .appointments, .shares,
        ]
    }

    private(set) var differences: [Difference] = []
    /// Entries in the realms by status.
    private(set) var statuses: [EntryStatus: Int] = [:]
    /// Invalid entries by the messages of their status logs.
    private(set) var reasons: [String: Int] = [:]
    /// Planned entries that ended as expected in realm and back end.
    private(set) var rightEntries: Set<UUID> = []
    /// Counts of tasks, calendars and defects by result.
    var counts: [Count: Int] = [:]
    /// Mistakes that were deleted without a trace.
    private(set) var goneCount = 0
    /// Realms of devices that were compared.
    private(set) var realmCount = 0
    /// Entries that became invalid since then must have a notice; `nil`: none is required.
    var noticesSince: Timestamp?
    /// The live records without an entry so far, by marker.
    private var recordsByMarker: [String: [BackendRecord]] = [:]

    /// - Parameter records: All records of the back end. Records of people other than `people` are ignored.
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

    mutating func note(_ person: String, _ subject: String, _ detail: String) {
        differences.append(Difference(person: person, subject: subject, detail: detail))
    }

    // MARK: Device and realm

    /// Compares each device with all realms of its person, and the own realms with the plans and the back end.
    ///
    /// - Parameter onEach: Called after each device.
    mutating func compare(
        _ members: [Fleet.Member], _ reading: FieldworkReading, _ onEach: () -> Void = {}
    ) async {
        let realms = reading.snapshot.realms
        for member in members {
            let (person, own) = (member.device.person, member.device.realm)
            let contents = await member.device.contents
            if let id = reading.person(of: own) {
                for line in reading.strange(to: id, device: contents) { note(person.email, "realms", line) }
                for path in reading.realms(of: id, device: contents).sorted() {
                    compare(person.email, path, device: contents[path] ?? [:], stored: realms[path] ?? [:])
                    realmCount += 1
                }
            } else {
                note(person.email, "realms", "there is no such person")
            }
            compare(person, member.plans, realm: realms[own] ?? [:])
            onEach()
        }
    }

    /// Compares the device's copy of a realm with the realm: objects, positions and fields.
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
                    continue
                }
                let fields = Self.differingFields(held.fields, stored.fields)
                if !fields.isEmpty {
                    let names = fields.joined(separator: ", ")
                    note(person, subject, "other fields on the device than in PostgreSQL: \(names)")
                }
            }
        }
    }

    /// The names of the fields in which two objects differ; the same value may be written differently. Numbers in
    /// objects and lists must have equally many digits after the decimal point.
    static func differingFields(_ left: [UInt8], _ right: [UInt8]) -> [String] {
        if left == right { return [] }
        func object(_ bytes: [UInt8]) -> JSONObject? {
            (try? JSONCanonical.bytes(of: bytes)).flatMap { try? JSONObject($0) }
        }
        func number(_ value: ArraySlice<UInt8>?) -> Decimal? {
            value.flatMap { Decimal(string: String(decoding: $0, as: UTF8.self)) }
        }
        guard let left = object(left), let right = object(right) else { return ["not an object"] }
        return Set((left.members + right.members).map(\.key)).filter { key in
            let (left, right) = (left.value(of: key), right.value(of: key))
            return left != right && (number(left) == nil || number(left) != number(right))
        }.sorted()
    }

    // MARK: Realm and back end

    /// Checks that every entry ended as planned, with exactly the corresponding records.
    mutating func compare(_ person: Organisation.Person, _ plans: [EntryPlan], realm: RealmContent) {
        let logs = Self.logs(in: realm)
        check(logs, of: person, realm)
        checkNotices(of: person, plans, realm)
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
            note(person.email, "entry \(id.text)", "is in the realm, but was not written")
        }
    }

    /// Reports records without an entry; called after all people.
    mutating func finish() {
        for record in recordsByMarker.values.joined().sorted(by: { $0.record < $1.record }) {
            note(record.person, "record \(record.record)", "belongs to no entry: \(record.note)")
        }
        recordsByMarker = [:]
    }

    /// Adds the entries that devices could not finish.
    mutating func add(failures: [UUID: String]) {
        for (id, reason) in failures.sorted(by: { $0.key.text < $1.key.text }) {
            note("device", "entry \(id.text)", reason)
        }
    }

    private mutating func check(
        _ plan: EntryPlan, of person: Organisation.Person, _ object: DeviceObject?, _ messages: [String],
        _ records: [BackendRecord]
    ) {
        if let entry = object.flatMap({ SeenEntry($0) }) {
            statuses[entry.status, default: 0] += 1
            if entry.status == .invalid {
                for message in Set(messages.map(Self.reason)) { reasons[message, default: 0] += 1 }
            }
        }
        for detail in Self.differences(from: plan, of: person, object, messages, records) {
            note(person.email, "entry \(plan.id.text)", detail)
        }
    }

    private static func differences(
        from plan: EntryPlan, of person: Organisation.Person, _ object: DeviceObject?, _ messages: [String],
        _ records: [BackendRecord]
    ) -> [String] {
        func excess(_ reason: String) -> [String] {
            records.map { "\(reason), and the back end has record \($0.record)" }
        }
        if plan.variant.isMistake {
            return (object == nil ? [] : ["was deleted, and is still in the realm"]) + excess("was deleted")
        }
        guard let object, let entry = object.decoded(as: TimeEntry.self) else {
            return [object == nil ? "is not in the realm" : "cannot be read in the realm"]
        }
        let fields: [(String, String, String)] = [
            ("text", entry.text ?? "", plan.text),
            ("date", entry.entryDate?.description ?? "", plan.entry.day.description),
            ("seconds", entry.durationSeconds.map(String.init) ?? "", String(plan.entry.durationSeconds)),
        ]
        var details = fields.filter { $0.1 != $0.2 }.map { "\($0) '\($1)' in the realm, '\($2)' was written" }
        let log = messages.joined(separator: "; ")
        switch plan.entry.expectation {
        case .released:
            if entry.status != .released {
                details.append("is \(entry.status.rawValue), not released" + (log.isEmpty ? "" : " (\(log))"))
            }
            return details + differences(of: records, from: plan, entry, person)
        case .invalid(let reason):
            if entry.status != .invalid {
                details.append("is \(entry.status.rawValue), not invalid")
            } else if !messages.contains(where: { $0.contains(reason.rawValue) }) {
                details.append("its log has \(log.isEmpty ? "nothing" : log), not '\(reason.rawValue)'")
            }
            return details + excess("is invalid")
        }
    }

    private static func differences(
        of records: [BackendRecord], from plan: EntryPlan, _ entry: TimeEntry, _ person: Organisation.Person
    ) -> [String] {
        guard let record = records.first, records.count == 1 else {
            let numbers = records.map(\.record).joined(separator: ", ")
            return [
                records.isEmpty ? "the back end has no record of it" : "the back end has it more than once: \(numbers)"
            ]
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
        return compared.filter { $0.1 != $0.2 }.map { "record \(record.record): \($0) '\($1)', not '\($2)'" }
    }

    // MARK: Notices

    /// Checks that the person was notified of each invalid entry.
    private mutating func checkNotices(
        of person: Organisation.Person, _ plans: [EntryPlan], _ realm: RealmContent
    ) {
        guard let noticesSince else { return }
        var notified: Set<UUID> = []
        for (id, object) in realm where id.kind == .notice {
            guard let notice = object.decoded(as: Notice.self), notice.code == .entryInvalid, let about = notice.about
            else { continue }
            notified.insert(about)
        }
        counts[.entryNotices, default: 0] += notified.count
        for plan in plans where !plan.variant.isMistake && !notified.contains(plan.id) {
            guard case .invalid = plan.entry.expectation,
                let entry = realm[ObjectID(kind: .timeEntry, id: plan.id)]?.decoded(as: TimeEntry.self),
                entry.status == .invalid, let statusAt = entry.statusAt, statusAt >= noticesSince
            else { continue }
            note(person.email, "entry \(plan.id.text)", "is invalid, and its person has no notice of it")
        }
    }

    // MARK: Status logs

    private static func logs(in realm: RealmContent) -> [UUID: [TimeEntryStatus]] {
        var logs: [UUID: [TimeEntryStatus]] = [:]
        for (id, object) in realm where id.kind == .timeEntryStatus {
            guard let line = object.decoded(as: TimeEntryStatus.self) else { continue }
            logs[line.entry, default: []].append(line)
        }
        return logs
    }

    /// Checks that the newest line of every entry has the entry's status, and that no line belongs to a deleted entry.
    private mutating func check(
        _ logs: [UUID: [TimeEntryStatus]], of person: Organisation.Person, _ realm: RealmContent
    ) {
        var left = logs
        for (id, object) in realm where id.kind == .timeEntry {
            let lines = left.removeValue(forKey: id.id) ?? []
            guard let entry = object.decoded(as: TimeEntry.self),
                let objection = TimeEntryStatus.objection(to: lines, of: entry)
            else { continue }
            note(person.email, "entry \(id.id.text)", "is \(entry.status.rawValue), and of its log: \(objection)")
        }
        for id in left.keys.sorted(by: { $0.text < $1.text }) {
            note(person.email, "entry \(id.text)", "is not in the realm, and has a status log")
        }
    }

    /// A message without names and dates.
    private static func reason(_ message: String) -> String {
        message.split(separator: " ").map { word in
            word.contains(where: \.isNumber) && word.contains { $0.isLetter || $0 == "-" } ? "…" : word
        }.joined(separator: " ")
    }

    /// Adds the figures and the differences to a report.
    func add(to report: inout ScenarioReport, _ organisation: Organisation) {
        for status in EntryStatus.allCases {
            if let count = statuses[status] { report.add("entries \(status.rawValue)", count) }
        }
        for (reason, count) in reasons.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            report.add("entries invalid: \(reason)", count)
        }
        report.add("mistakes made and deleted", goneCount)
        let rows = Dictionary(grouping: organisation.entries, by: \.sourceRow)
        report.add("source rows", organisation.rowsTotal)
        report.add("source rows accounted for", rows.values.count { $0.allSatisfy { rightEntries.contains($0.id) } })
        for count in Count.allCases {
            if let number = counts[count] { report.add(count.rawValue, number) }
        }
        report.differences += differences.map(\.description)
    }
}
