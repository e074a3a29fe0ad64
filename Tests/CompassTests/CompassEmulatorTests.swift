import BackendProtocol
import Compass
import Essentials
import Foundation
import HTTPClient
import TestSupport
import Testing

@testable import Sandbox

/// Features of the emulator beyond the contract; services are tested against it.
@Suite(.ownThreads) struct CompassEmulatorTests {
    typealias Fixture = CompassFixture

    /// When daylight saving time ends, the time stamps of an hour occur twice.
    @Test func endOfDaylightSavingTimeRepeatsHour() throws {
        let copenhagen = CompassZone(offsetMinutes: 60, summer: .eu)
        let texts = [
            "2026-10-25T00:59:59Z", "2026-10-25T01:00:00Z", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z",
            "2026-12-31T23:30:00Z", "1969-06-01T00:00:00Z",
        ].compactMap { Timestamp($0) }.map { copenhagen.text($0.millisecondsSinceEpoch) }
        #expect(
            texts == [
                "2026-10-25 02:59:59", "2026-10-25 02:00:00", "2026-03-29 01:59:59", "2026-03-29 03:00:00",
                "2027-01-01 00:30:00", "1969-06-01 02:00:00",
            ])
        let newYork = CompassZone(offsetMinutes: -300, summer: .us)
        let american = [
            "2026-11-01T05:59:59Z", "2026-11-01T06:00:00Z", "2026-03-08T06:59:59Z", "2026-03-08T07:00:00Z",
        ].compactMap { Timestamp($0) }.map { newYork.text($0.millisecondsSinceEpoch) }
        #expect(
            american == [
                "2026-11-01 01:59:59", "2026-11-01 01:00:00", "2026-03-08 01:59:59", "2026-03-08 03:00:00",
            ])
    }

    /// Records that are created at the end of a second have the time of their history, not an earlier one.
    @Test func submitDateIsTheTimeOfTheFirstRowOfHistory() throws {
        let system = try CompassSystem(journalPath: nil)
        system.load(CompassFixture.organisation)
        let user = CompassUser(name: "ana", password: "")
        let values = Dictionary(uniqueKeysWithValues: CompassFixture.values.map { ($0.name, $0.value) })
        let start = Timestamp.now().millisecondsSinceEpoch
        while Timestamp.now().millisecondsSinceEpoch < start + 2_100 {
            let (submitted, first) = try system.withState { state throws(CompassRules.Refusal) in
                let id = try state.create(by: user, isTrial: false).record.id
                let record = try state.commit(id, values, by: user, isTrial: false).record
                return (record.submittedAtMs, state.history[record.number - 1].first?.clockMs)
            }
            #expect(submitted == first)
        }
    }

    @Test func lateVisibleHistoryIsReportedUnchanged() async throws {
        try await Fixture.run { fixture in
            try await fixture.post("/sandbox/clock", #"{"now": "2026-11-23T13:00:00Z"}"#)
            try await fixture.switches(
                #"{"visibleAfterMs": 60000, "clockSkewSeconds": 600, "zone": {"offsetMinutes": 60, "summer": "eu"}}"#)
            let compass = fixture.compass()
            let id = try await fixture.record(compass)
            let query = try await fixture.query(compass, ["id", "history.action_timestamp"])
            #expect(try await compass.rows(of: query).isEmpty)
            try await fixture.post("/sandbox/clock", #"{"advanceSeconds": 60}"#)
            let rows = try await compass.rows(of: query)
            #expect(rows.map { $0["history.action_timestamp"] } == ["2026-11-23 14:10:00"])
            struct Line: Decodable {
                let record, action, user, at, timestamp, visibleAt, newState: String
            }
            let line = try #require(try await fixture.lines("/sandbox/history", as: Line.self).first)
            #expect(line.record == id && line.action == "Submit" && line.user == "ana" && line.newState == "Submitted")
            #expect(line.at == "2026-11-23T13:00:00.000Z" && line.timestamp == "2026-11-23 14:10:00")
            #expect(line.visibleAt == "2026-11-23T13:01:00.000Z")
        }
    }

    @Test func committedRecordsSurviveRestartAndEditSessionsDoNot() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "compass-\(UUID()).jsonl")
        defer { try? FileManager.default.removeItem(at: file) }
        var committed: (id: String, query: String, before: Record?) = ("", "", nil)
        try await Fixture.run(state: file.path) { fixture in
            fixture.system.load(Fixture.organisation)
            let compass = fixture.compass()
            committed.id = try await fixture.record(compass)
            committed.query = try await fixture.query(compass, ["id", "history.action_name"]).id ?? ""
            let gone = try await fixture.query(compass, ["id"], name: "gone").id ?? ""
            try await compass.deleteQuery(gone)
            let deleted = try await fixture.record(compass)
            try await compass.delete(deleted, before: .never)
            committed.before = try await compass.record(committed.id)
            _ = try await compass.edit(committed.id, before: .never)
            _ = try await compass.create(before: .never)
        }
        try await Fixture.run(state: file.path) { fixture in
            let compass = fixture.compass()
            #expect(try await compass.record(committed.id) == committed.before)
            let query = try #require(try await compass.query(committed.query))
            #expect(try await compass.rows(of: query).map { $0["history.action_name"] } == ["Submit"])
            #expect(try await compass.folder(at: [Folder.personalQueries])?.items.count == 1)
            #expect(fixture.system.withState { $0.sessions.all.isEmpty })
            // A commit into a session that no longer exists is refused with a message.
            await #expect(throws: BackendError.refused(["The record \(committed.id) is not being edited."])) {
                try await compass.commit(committed.id, [], before: .never)
            }
            _ = try await compass.edit(committed.id, before: .never)
        }
    }

    @Test func abandonedEditSessionExpires() async throws {
        try await Fixture.run { fixture in
            try await fixture.post("/sandbox/clock", #"{"now": "2026-11-23T13:00:00Z"}"#)
            let compass = fixture.compass()
            let id = try await fixture.record(compass)
            let session = try await compass.edit(id, before: .never)
            await #expect(throws: BackendError.self, "one is open") { try await compass.edit(id, before: .never) }
            try await fixture.post("/sandbox/clock", #"{"advanceSeconds": 1801}"#)
            await #expect(throws: BackendError.self) { try await session.commit([], before: .never) }
            _ = try await compass.edit(id, before: .never)
        }
    }

    @Test func testInterfaceListsOpenSessionsAndQueries() async throws {
        struct Session: Decodable, Equatable {
            let user, record, action: String
            let isNew: Bool
        }
        struct Query: Decodable, Equatable { let name, owner: String }
        try await Fixture.run { fixture in
            func read<Row: Decodable>(_ name: String, as type: [Row].Type) async throws -> [Row] {
                try await fixture.read("/sandbox/" + name, as: type)
            }
            let (ana, bo) = (fixture.compass(), fixture.compass(as: Fixture.bo))
            let id = try await fixture.record(ana)
            _ = try await bo.edit(id, action: "Open", before: .never)
            let new = try await ana.create(before: .never)
            _ = try await fixture.query(bo, ["id"], name: "left")
            #expect(
                Set(try await read("sessions", as: [Session].self).map { "\($0.user) \($0.record) \($0.action)" })
                    == ["bo \(id) Open", "ana \(new.id) Submit"])
            #expect(try await read("sessions", as: [Session].self).filter(\.isNew).map(\.record) == [new.id])
            #expect(try await read("queries", as: [Query].self) == [Query(name: "left", owner: "bo")])
        }
    }

    @Test func fieldBecomesMandatoryByValueOfAnother() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            let id = try await fixture.record(compass)
            let session = try await compass.edit(id, [FieldValue("Severity", "1-Critical")], before: .never)
            #expect(session.record.missing == ["Priority"])
            let problem = "The field \"Priority\" is mandatory; a value must be specified."
            await #expect(throws: BackendError.refused([problem])) {
                try await session.commit([FieldValue("Priority", " ")], before: .never)
            }
            _ = try await session.commit([FieldValue("Priority", "1-Resolve Immediately")], before: .never)
        }
    }

    @Test func testInterfaceChangesRecord() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            let id = try await fixture.record(compass)
            let session = try await compass.edit(id, before: .never)
            try await fixture.post(
                "/sandbox/changes",
                #"[{"record": "\#(id)", "user": "bo", "action": "Assign", "fields": {"Owner": "ana"}}]"#)
            await #expect(
                throws: BackendError.refused([
                    "The record \(id) has been updated by another user while you were editing it."
                ])
            ) { try await session.commit([FieldValue("Headline", "mine")], before: .never) }
            try await session.revert()
            let record = try #require(try await compass.record(id))
            #expect(record["Owner"]?.value == "ana" && record["State"]?.value == "Assigned")
        }
    }

    @Test func foldersAreReadOneByOne() async throws {
        try await Fixture.run { fixture in
            for path in [#"["A"]"#, #"["A", "B"]"#] {
                try await fixture.post("/sandbox/folders", #"{"user": "ana", "path": \#(path)}"#)
            }
            let compass = fixture.compass()
            let folder = try #require(try await compass.folder(at: [Folder.personalQueries, "A", "B"]))
            #expect(folder.name == "B")
            #expect(try await fixture.stats()["folderReads"] == 3)
            #expect(try await compass.folder(at: [Folder.personalQueries, "B"]) == nil)
            let bo = fixture.compass(as: Fixture.bo)
            #expect(try await bo.folder(at: [Folder.personalQueries, "A"]) == nil)
            #expect(try await bo.folder(folder.id) == nil, "another's")
            let publicFolder = try #require(try await bo.folder(at: [Folder.publicQueries]))
            await #expect(throws: BackendError.self, "this folder is read-only") {
                try await bo.create(
                    QueryDefinition(
                        name: "x", folder: publicFolder.id, recordType: "Defect", columns: [.init("id")],
                        filter: QueryFilter()))
            }
        }
    }
}
