import BackendProtocol
import Backends
import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import Workbench

/// One person with two entries and a mistake, everything as it should be; each test spoils one thing.
@Suite(.ownThreads) struct VerdictTests {
    private let person: Organisation.Person
    private let path: RealmPath
    private let released: EntryPlan
    private let invalid: EntryPlan
    private let mistake: EntryPlan
    private var realm: RealmContent
    private var records: [BackendRecord]

    init() throws {
        let organisation = GeneratedOrganisation.make(people: 1, seed: 1)
        person = try #require(organisation.people.first)
        path = try RealmPath.user(person.email)
        let entry = try #require(organisation.entries.first { $0.expectation == .released })
        let empty = PlannedEntry(
            id: StableID.uuid("empty"), person: person.id, day: entry.day, durationSeconds: 0, project: entry.project,
            accountingCode: entry.accountingCode, text: entry.text, sourceRow: 2, expectation: .invalid(.noDuration))
        released = EntryPlan(entry: entry, id: entry.id, variant: .editedAfter)
        invalid = EntryPlan(entry: empty, id: empty.id, variant: .plain)
        mistake = EntryPlan(entry: entry, id: StableID.uuid("mistake"), variant: .deletedAfter)
        records = [Self.record("000000000001", of: released, person)]
        var cancelled = Self.record("000000000002", of: mistake, person)
        cancelled.status = "60"
        records.append(cancelled)
        realm = [
            ObjectID(kind: .timeEntry, id: released.id): try Self.object(
                4, Self.fields(of: released, .released, backendId: "000000000001")),
            ObjectID(kind: .timeEntry, id: invalid.id): try Self.object(5, Self.fields(of: invalid, .invalid)),
            ObjectID(kind: .timeEntryStatus, id: StableID.uuid("log")): try Self.object(
                6,
                TimeEntryStatus(
                    entry: invalid.id, status: .invalid, timestamp: Timestamp(millisecondsSinceEpoch: 0),
                    message: "Duration must be more than 0")),
            ObjectID(kind: .notice, id: StableID.uuid("notice")): try Self.object(
                7,
                Notice(
                    about: invalid.id, code: .entryInvalid, text: "Your entry is invalid",
                    timestamp: Timestamp(millisecondsSinceEpoch: 0))),
        ]
    }

    @Test func correctStateHasNoDifferences() {
        let verdict = judge(realm, records)
        #expect(verdict.differences == [])
        #expect(verdict.rightEntries == [released.id, invalid.id])
        #expect(verdict.statuses == [.released: 1, .invalid: 1])
        #expect(verdict.reasons == ["Duration must be more than 0": 1])
        #expect(verdict.goneCount == 1)
        #expect(verdict.counts[.entryNotices] == 1)
    }

    // MARK: Device and realm

    @Test func theDeviceMustHoldWhatTheRealmHolds() throws {
        let id = ObjectID(kind: .timeEntry, id: released.id)
        let held = try #require(realm[id])
        expectDifference("PostgreSQL has it, the device does not") { $0[id] = nil }
        expectDifference("the device has it, PostgreSQL does not") {
            $0[ObjectID(kind: .timeEntry, id: StableID.uuid("x"))] = held
        }
        expectDifference("position 9 on the device, 4 in PostgreSQL") {
            $0[id] = DeviceObject(position: 9, fields: held.fields)
        }
        let changed = String(decoding: held.fields, as: UTF8.self).replacing(#""released""#, with: #""draft""#)
        expectDifference("other fields on the device than in PostgreSQL: status") {
            $0[id] = DeviceObject(position: 4, fields: Array(changed.utf8))
        }
    }

    @Test func theSameFieldsWrittenDifferentlyAreEqual() {
        func differingFields(_ left: String, _ right: String) -> [String] {
            Verdict.differingFields(Array(left.utf8), Array(right.utf8))
        }
        let left = #"{"a": 15e-1, "b": ["x", null, true], "c": {"d": "é"}}"#
        #expect(differingFields(left, #"{"c":{"d":"\u00e9"},"b":["x",null,true],"a":1.5}"#) == [])
        #expect(differingFields(#"{"a":1.50}"#, #"{"a":1.5}"#) == [])
        #expect(differingFields(#"{"a":1.51}"#, #"{"a":1.5}"#) == ["a"])
        #expect(differingFields(left, #"{"a":1.5}"#) == ["b", "c"])
        #expect(differingFields(#"{"a":1}"#, #"{"a":true}"#) == ["a"])
        #expect(differingFields(#"{"a":1}"#, #"{"a":"1"}"#) == ["a"])
        #expect(differingFields(#"{"a":null}"#, "{}") == ["a"])
    }

    private func expectDifference(_ detail: String, _ spoil: (inout RealmContent) -> Void) {
        var verdict = Verdict(of: [person], records: [])
        var device = realm
        spoil(&device)
        verdict.compare(person.email, path, device: device, stored: realm)
        #expect(verdict.differences.map(\.detail) == [detail])
    }

    // MARK: Realm and back end

    @Test func aReleasedEntryNeedsItsRecord() throws {
        #expect(details(realm, [records[1]]) == ["the back end has no record of it"])
        var twice = records
        twice[1] = Self.record("000000000003", of: released, person)
        #expect(details(realm, twice) == ["the back end has it more than once: 000000000001, 000000000003"])
        let spoilers: [(String, (inout BackendRecord) -> Void)] = [
            (
                "person",
                {
                    $0.person = "emp001"; $0.companyCode = "1010"
                }
            ), ("company code", { $0.companyCode = "2020" }),
            ("date", { $0.date = $0.date.adding(days: 1) }), ("hours", { $0.hours = "99.00" }),
            ("WBS element", { $0.wbsElement = "W0" }), ("number", { $0.record = "000000000009" }),
            ("note", { $0.note = "Other " + EntryMarker.marker(of: released.id) }),
        ]
        for (name, spoil) in spoilers where name != "person" {
            var spoiled = records
            spoil(&spoiled[0])
            let found = details(realm, spoiled)
            #expect(found.count == 1 && found[0].contains(": \(name) '"), "\(name): \(found)")
        }
        var cancelled = records
        cancelled[0].status = "60"
        #expect(details(realm, cancelled) == ["the back end has no record of it"])
    }

    @Test func aRecordOfAnotherPersonDoesNotCount() throws {
        let colleague = GeneratedOrganisation.make(people: 2, seed: 1).people[1]
        var spoiled = records
        spoiled[0].person = colleague.personWorkAgreementExternalId
        var verdict = Verdict(of: [person, colleague], records: spoiled)
        verdict.compare(person, [released, invalid, mistake], realm: try Self.withLogs(realm))
        verdict.finish()
        #expect(verdict.differences.count == 1)
        #expect(verdict.differences.first?.detail.contains(": person '") == true)
    }

    @Test func aRecordNeedsItsEntry() {
        var more = records
        more.append(
            Self.record(
                "000000000003",
                of: EntryPlan(
                    entry: released.entry, id: StableID.uuid("nobody"), variant: .plain), person))
        #expect(details(realm, more).count == 1)
        more[2].note = "typed in by hand"
        #expect(details(realm, more) == ["has no marker: typed in by hand"])
    }

    @Test func invalidEntryHasAReasonAndNoRecord() throws {
        let record = Self.record("000000000003", of: invalid, person)
        #expect(details(realm, records + [record]) == ["is invalid, and the back end has record 000000000003"])
        var silent = realm
        silent[ObjectID(kind: .timeEntryStatus, id: StableID.uuid("log"))] = nil
        #expect(details(silent, records) == ["its log has nothing, not 'Duration must be more than 0'"])
        var draft = realm
        draft[ObjectID(kind: .timeEntry, id: invalid.id)] = try Self.object(5, Self.fields(of: invalid, .draft))
        #expect(details(draft, records) == ["is draft, not invalid"])
    }

    @Test func invalidEntryHasANotice() throws {
        let missing = "is invalid, and its person has no notice of it"
        var silent = realm
        silent[ObjectID(kind: .notice, id: StableID.uuid("notice"))] = nil
        #expect(details(silent, records) == [missing])
        #expect(judge(silent, records, since: Timestamp(millisecondsSinceEpoch: 1)).differences == [])
        for (about, code) in [(released.id, Notice.Code.entryInvalid), (invalid.id, .entryChanged)] {
            silent[ObjectID(kind: .notice, id: StableID.uuid("other"))] = try Self.object(
                7, Notice(about: about, code: code, text: "", timestamp: Timestamp(millisecondsSinceEpoch: 0)))
            #expect(details(silent, records) == [missing])
        }
    }

    @Test func aMistakeLeavesNothing() throws {
        var live = records
        live[1].status = "20"
        #expect(details(realm, live) == ["was deleted, and the back end has record 000000000002"])
        var spoiled = realm
        spoiled[ObjectID(kind: .timeEntry, id: mistake.id)] = try Self.object(7, Self.fields(of: mistake, .released))
        #expect(details(spoiled, records) == ["was deleted, and is still in the realm"])
    }

    @Test func theRealmHoldsWhatWasWritten() throws {
        let id = ObjectID(kind: .timeEntry, id: released.id)
        var lost = realm
        lost[id] = nil
        #expect(details(lost, records) == ["is not in the realm"])
        var fields = Self.fields(of: released, .released, backendId: "000000000001")
        fields.text = "Other"
        var other = realm
        other[id] = try Self.object(4, fields)
        #expect(details(other, records) == ["text 'Other' in the realm, '\(released.text)' was written"])
        var waiting = realm
        waiting[id] = try Self.object(4, Self.fields(of: released, .submitted, backendId: "000000000001"))
        #expect(details(waiting, records) == ["is submitted, not released"])
        var more = realm
        more[ObjectID(kind: .timeEntry, id: StableID.uuid("more"))] = try Self.object(
            8, Self.fields(of: released, .draft))
        #expect(details(more, records) == ["is in the realm, but was not written"])
    }

    @Test func newestLogLineHasTheStatus() throws {
        let right = try Self.withLogs(realm)
        #expect(judge(right, records, logs: false).differences == [])
        let (id, log) = (ObjectID(kind: .timeEntry, id: invalid.id), ObjectID(kind: .timeEntryStatus, id: invalid.id))
        var entry = try JSONDecoder().decode(TimeEntry.self, from: Data(try #require(right[id]).fields))
        entry.statusAt = Timestamp(millisecondsSinceEpoch: 1)
        let line = TimeEntryStatus(entry: invalid.id, status: .draft, timestamp: try #require(entry.statusAt))
        let of = "is invalid, and of its log: "
        func details(_ change: (inout RealmContent) throws -> Void) throws -> [String] {
            var realm = right
            try change(&realm)
            return judge(realm, records, logs: false).differences.map(\.detail)
        }
        #expect(try details { $0[log] = try Self.object(9, line) } == [of + "the newest line's status is draft"])
        let other = "the newest line's time is 1970-01-01T00:00:00.000Z, not 1970-01-01T00:00:00.001Z"
        #expect(try details { $0[id] = try Self.object(5, entry) } == [of + other])
        let silent = try details { $0[ObjectID(kind: .timeEntryStatus, id: StableID.uuid("log"))] = nil }
        #expect(silent.first == of + "the log has no lines")
        let left = TimeEntryStatus(entry: mistake.id, status: .draft, timestamp: line.timestamp)
        #expect(try details { $0[log] = try Self.object(9, left) } == ["is not in the realm, and has a status log"])
    }

    @Test func unfinishedWorkOfADeviceIsADifference() {
        var verdict = judge(realm, records)
        verdict.add(failures: [released.id: "it is gone"])
        #expect(verdict.differences.map(\.detail) == ["it is gone"])
    }

    // MARK: Making

    /// - Parameters:
    ///   - logs: Whether status logs are made to agree with their entries.
    ///   - since: The time since which invalid entries must have a notice.
    private func judge(
        _ realm: RealmContent, _ records: [BackendRecord], logs: Bool = true,
        since: Timestamp = Timestamp(millisecondsSinceEpoch: 0)
    ) -> Verdict {
        var verdict = Verdict(of: [person], records: records)
        verdict.noticesSince = since
        let realm = logs ? (try? Self.withLogs(realm)) ?? realm : realm
        verdict.compare(person.email, path, device: realm, stored: realm)
        verdict.compare(person, [released, invalid, mistake], realm: realm)
        verdict.finish()
        return verdict
    }

    private func details(_ realm: RealmContent, _ records: [BackendRecord]) -> [String] {
        judge(realm, records).differences.map(\.detail)
    }

    private static func withLogs(_ realm: RealmContent) throws -> RealmContent {
        var lines: [UUID: (id: ObjectID, line: TimeEntryStatus)] = [:]
        for (id, object) in realm where id.kind == .timeEntryStatus {
            let line = try JSONDecoder().decode(TimeEntryStatus.self, from: Data(object.fields))
            lines[line.entry] = (id, line)
        }
        var realm = realm
        for (id, object) in realm where id.kind == .timeEntry {
            var entry = try JSONDecoder().decode(TimeEntry.self, from: Data(object.fields))
            let new = TimeEntryStatus(
                entry: id.id, status: entry.status, timestamp: Timestamp(millisecondsSinceEpoch: 0))
            var (key, line) = lines[id.id] ?? (ObjectID(kind: .timeEntryStatus, id: id.id), new)
            line.status = entry.status
            entry.statusAt = line.timestamp
            realm[id] = try Self.object(object.position, entry)
            realm[key] = try Self.object(realm[key]?.position ?? 3, line)
        }
        return realm
    }

    private static func fields(of plan: EntryPlan, _ status: EntryStatus, backendId: String? = nil) -> TimeEntry {
        TimeEntry(
            backendId: backendId, status: status, text: plan.text, entryDate: plan.entry.day,
            durationSeconds: plan.entry.durationSeconds, submitRequested: true)
    }

    private static func object(_ position: Int64, _ fields: some Encodable) throws -> DeviceObject {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return DeviceObject(position: position, fields: Array(try encoder.encode(fields)))
    }

    private static func record(_ number: String, of plan: EntryPlan, _ person: Organisation.Person) -> BackendRecord {
        BackendRecord(
            record: number, person: person.personWorkAgreementExternalId, companyCode: person.companyCode,
            date: plan.entry.day, hours: Hours(seconds: plan.entry.durationSeconds).description,
            note: EntryMarker.note(text: plan.text, marker: EntryMarker.marker(of: plan.id)),
            wbsElement: plan.entry.accountingCode, status: "20")
    }
}
