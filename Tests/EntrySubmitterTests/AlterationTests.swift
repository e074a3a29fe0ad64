import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import KeyedWorker

/// Back ends that store other values than they were sent.
@Suite(.ownThreads) struct AlterationTests {
    private typealias World = BackendWorld
    private let id = UUID()

    struct Alteration: Sendable {
        let switches: String
        let sent, stored, message: String
    }

    static let alterations = [
        Alteration(
            switches: #"{"convertsLineEnds": true}"#, sent: "one\r\ntwo", stored: "one\ntwo",
            message: #"The back end keeps the text "one\ntwo" instead of "one\r\ntwo""#),
        Alteration(
            switches: #"{"trimsTexts": true}"#, sent: " one  two ", stored: "one two",
            message: #"The back end keeps the text "one two" instead of " one  two ""#),
        Alteration(
            switches: #"{"replacesAstral": true}"#, sent: "roof 🛠", stored: "roof ?",
            message: #"The back end keeps the text "roof ?" instead of "roof 🛠""#),
    ]

    @Test(arguments: BackendWorld.Vendor.allCases, alterations)
    func alteredTextIsWrittenOnceAndAdopted(vendor: BackendWorld.Vendor, alteration: Alteration) async throws {
        try await World.run(vendor) { world in
            try await world.switches(alteration.switches)
            var draft = world.draft()
            draft.text = alteration.sent
            let record = try await world.release(id, draft)
            #expect(try world.entry(id)?.text == alteration.stored)
            let line = try world.lines(id).last
            #expect(line?.message == alteration.message && line?.code == .altered && line?.status == .released)
            #expect(try await writes(world) == 1)
            // The next poll reports nothing new.
            try await world.poll()
            #expect(try world.lines(id).count == 2)
            #expect(try world.entry(id)?.backendId == record)
        }
    }

    @Test(arguments: BackendWorld.Vendor.allCases)
    func alteredTextWithLostResponseIsWrittenOnceAndAdopted(vendor: BackendWorld.Vendor) async throws {
        try await World.run(vendor) { world in
            try await world.switches(#"{"replacesAstral": true, "nextLostAfterWrite": 1}"#)
            var draft = world.draft()
            draft.text = "roof 🛠"
            _ = try await world.release(id, draft)
            #expect(try world.entry(id)?.text == "roof ?")
            #expect(try await writes(world) == 1)
        }
    }

    @Test func alteredTextKeepsEnteredInterval() async throws {
        try await World.run(.sap) { world in
            try await world.switches(#"{"replacesAstral": true}"#)
            var draft = world.draft()
            (draft.text, draft.timeType, draft.durationSeconds) = ("🛠", .interval, nil)
            draft.startTime = ZonedTime("2015-03-30T08:00:00+02:00")
            draft.endTime = ZonedTime("2015-03-30T09:30:00+02:00")
            _ = try await world.release(id, draft)
            let entry = try #require(try world.entry(id))
            #expect(entry.text == "?" && entry.timeType == .interval && entry.startTime == draft.startTime)
        }
    }

    /// A successor is created once. The same edit again creates none: SAP would alter it in the same way.
    @Test func approvedRecordIsReplacedOnceForAlteredText() async throws {
        try await World.run(.sap) { world in
            let old = try await world.release(id)
            try await world.move(old, to: "30")
            try await world.poll()
            try await world.switches(#"{"replacesAstral": true}"#)
            try world.edit(id) { $0.text = "roof 🛠" }
            try await world.work(id)
            let new = try #require(try world.entry(id)?.backendId)
            #expect(new != old)
            try await world.move(new, to: "30")
            try await world.poll()
            #expect(try world.entry(id)?.status == .approved)

            try world.edit(id) { $0.text = "roof 🛠" }
            try await world.work(id)
            let entry = try #require(try world.entry(id))
            #expect(entry.status == .approved && entry.backendId == new && entry.text == "roof ?")
            #expect(try world.lines(id).last?.code == .altered)
            #expect(try await writes(world) == 2)
        }
    }

    /// SAP returned the id of the successor, which is not readable yet: it is adopted when it is, and not written
    /// again.
    @Test func unreadableSuccessorIsWrittenOnce() async throws {
        try await World.run(.sap) { world in
            let old = try await world.release(id)
            try await world.move(old, to: "30")
            try await world.poll()
            try await world.switches(#"{"replacesAstral": true, "rate503OnReads": 1}"#)
            try world.edit(id) { $0.text = "roof 🛠" }
            guard case .deferred = try await world.step(id) else {
                Issue.record("it is not read later")
                return
            }
            try await world.switches(#"{"rate503OnReads": 0}"#)
            try await world.work(id)
            let entry = try #require(try world.entry(id))
            #expect(entry.status == .released && entry.text == "roof ?" && entry.backendId != old)
            #expect(try await writes(world) == 2)
        }
    }

    /// The response to the update is lost, and the record is approved before it is read: a second write would replace
    /// it.
    @Test func approvedRecordWithUpdateIsNotReplaced() async throws {
        try await World.run(.sap) { world in
            let record = try await world.release(id)
            try await world.switches(#"{"replacesAstral": true, "nextLostAfterWrite": 1}"#)
            try world.edit(id) { ($0.text, $0.durationSeconds) = ("roof 🛠", 7_200) }
            guard case .deferred = try await world.step(id) else {
                Issue.record("the outcome is known")
                return
            }
            try await world.move(record, to: "30")
            try await world.work(id)
            let entry = try #require(try world.entry(id))
            #expect(entry.status == .approved && entry.backendId == record && entry.text == "roof ?")
            #expect(try world.lines(id).last?.code == .altered)
            #expect(try await writes(world) == 2)
        }
    }

    /// The update was lost before it had an effect, and the record is approved with its old values: it is replaced.
    @Test func approvedRecordWithoutUpdateIsReplaced() async throws {
        try await World.run(.sap) { world in
            let record = try await world.release(id)
            try world.edit(id) { $0.text = "roof" }
            guard case .call(let call, _) = try world.decide(id, .event) else {
                Issue.record("no call")
                return
            }
            _ = try world.decide(id, .result(call.answer(.unknown(reason: "lost", recordID: nil))))
            try await world.move(record, to: "30")
            try await world.work(id)
            let entry = try #require(try world.entry(id))
            #expect(entry.status == .released && entry.backendId != record && entry.text == "roof")
            #expect(try await writes(world) == 2)
        }
    }

    /// The edit that was made meanwhile is submitted, and not overwritten by the result of the earlier one.
    @Test func alteredTextKeepsNewerEdit() async throws {
        try await World.run(.sap) { world in
            try await world.switches(#"{"replacesAstral": true}"#)
            var draft = world.draft()
            draft.text = "roof 🛠"
            try world.put(id, draft)
            guard case .call(let call, _) = try world.decide(id, .event) else {
                Issue.record("no call")
                return
            }
            let answer = try await world.make(call)
            try world.edit(id) { $0.text = "cellar" }
            guard case .reprocess = try world.decide(id, .result(answer)) else {
                Issue.record("the newer edit is not decided")
                return
            }
            #expect(try world.entry(id)?.text == "cellar")
            try await world.work(id)
            #expect(try world.entry(id)?.text == "cellar")
            #expect(try world.entry(id)?.status == .released)
            #expect(try await writes(world) == 2)
        }
    }

    /// The environment's limit is higher than the back end's: there is one record, whose id is known, and a shorter
    /// text fixes it.
    @Test(arguments: BackendWorld.Vendor.allCases)
    func truncatedMarkerInvalidatesEntry(vendor: BackendWorld.Vendor) async throws {
        try await World.run(vendor) { world in
            try await world.switches(#"{"textLengthMax": 50}"#)
            var draft = world.draft()
            draft.text = String(repeating: "long ", count: 7)
            try world.put(id, draft)
            try await world.work(id)
            let entry = try #require(try world.entry(id))
            #expect(entry.status == .invalid && entry.text == draft.text)
            #expect(try world.lines(id).last?.message == "The back end cut this text off: make it shorter")
            #expect(try await writes(world) == 1)
            let record = try #require(entry.backendId)
            try world.edit(id) { ($0.text, $0.submitRequested) = ("short", true) }
            try await world.work(id)
            #expect(try world.entry(id)?.status == .released)
            #expect(try world.entry(id)?.backendId == record)
            let live = try await world.backend.entries(of: world.person, from: World.day, through: World.day)
            #expect(live.map(\.marker) == [EntryMarker.marker(of: id)])
        }
    }

    /// The poller reports the record without its marker: no second entry is created. Deleting the entry deletes it.
    @Test(arguments: BackendWorld.Vendor.allCases)
    func recordWithTruncatedMarkerCreatesNoSecondEntry(vendor: BackendWorld.Vendor) async throws {
        try await World.run(vendor) { world in
            let record = try await cut(&world) { _ in }
            try await world.poll()
            #expect(try world.entry(foreign(record)) == nil)
            try world.edit(id) { $0.deleteRequested = true }
            try await world.work(id)
            #expect(try world.entry(id) == nil)
            #expect(try await live(world) == [])
        }
    }

    /// The poller was faster than the response to the write, so one record has two entries: deleting one keeps the
    /// record for the other, and deleting both deletes it.
    @Test(arguments: BackendWorld.Vendor.allCases, ["delete", "withdraw", "tombstone"])
    func recordOfAnotherEntryIsNotDeleted(vendor: BackendWorld.Vendor, request: String) async throws {
        try await World.run(vendor) { world in
            let record = try await cut(&world) { try await $0.poll() }
            let other = foreign(record)
            #expect(try world.entry(other)?.status == .released && world.entry(id)?.status == .invalid)
            switch request {
            case "delete": try world.edit(id) { $0.deleteRequested = true }
            case "withdraw": try world.edit(id) { $0.submitRequested = false }
            default: try world.tombstone(id)
            }
            try await world.work(id)
            #expect(try world.entry(id)?.status == (request == "withdraw" ? .draft : nil))
            #expect(try await live(world) == [record])
            try await world.poll()
            #expect(try world.entry(other)?.status == .released)
            try world.edit(other) { $0.deleteRequested = true }
            try await world.work(other)
            #expect(try world.entry(other) == nil)
            #expect(try await live(world) == [])
        }
    }

    /// Submits an entry whose record loses its marker.
    ///
    /// - Parameter meanwhile: Runs between the write and its result.
    /// - Returns: The record's id.
    private func cut(
        _ world: inout BackendWorld, meanwhile: (inout BackendWorld) async throws -> Void
    ) async throws -> String {
        try await world.switches(#"{"textLengthMax": 50}"#)
        var draft = world.draft()
        draft.text = String(repeating: "long ", count: 7)
        try world.put(id, draft)
        guard case .call(let call, _) = try world.decide(id, .event) else {
            Issue.record("no call")
            return ""
        }
        let answer = try await world.make(call)
        try await meanwhile(&world)
        _ = try world.decide(id, .result(answer))
        return try #require(try world.entry(id)?.backendId)
    }

    /// Returns the id of the entry that is created for a record without a marker.
    private func foreign(_ record: String) -> UUID {
        RealmContents.entryID(
            of: BackendEntry(
                id: record, marker: nil, day: World.day, durationSeconds: 0, text: nil, status: .released,
                references: [:]), of: World.email)
    }

    private func live(_ world: borrowing BackendWorld) async throws -> [String] {
        try await world.backend.entries(of: world.person, from: World.day, through: World.day).map(\.id)
    }

    /// On a screen they are 21 characters. The back end counts 42, and has room for 40 and the marker.
    @Test(arguments: BackendWorld.Vendor.allCases, ["🛠", "e\u{301}"])
    func textAboveLimitInCodeUnitsIsRefusedBeforeSending(vendor: BackendWorld.Vendor, character: String) async throws {
        try await World.run(vendor) { world in
            try await world.switches(#"{"textLengthMax": 65}"#)
            var draft = world.draft()
            draft.text = String(repeating: character, count: 21)
            try world.put(id, draft)
            try await world.work(id)
            #expect(try world.entry(id)?.status == .invalid)
            #expect(
                try world.lines(id).last?.message
                    == "Text has 42 characters as the back end counts them "
                    + "(an emoji or an accent may count as several); at most 40 are allowed")
            #expect(try await writes(world) == 0)
            try world.edit(id) { $0.text = String(repeating: character, count: 20) }
            try await world.work(id)
            #expect(try world.entry(id)?.status == .released)
        }
    }

    /// A third of an hour is 0.33 hours in the back end: a day of 24 such entries is 7.92 hours there, and each log
    /// line states the difference.
    @Test(arguments: BackendWorld.Vendor.allCases)
    func roundedLengthIsReportedInStatusLog(vendor: BackendWorld.Vendor) async throws {
        try await World.run(vendor) { world in
            for _ in 0..<24 {
                let id = UUID()
                var draft = world.draft()
                draft.durationSeconds = 1_200
                _ = try await world.release(id, draft)
                #expect(try world.entry(id)?.durationSeconds == 1_200)
                let line = try world.lines(id).last
                #expect(line?.message == "The back end keeps 0.33 hours, 12 seconds less than entered")
                #expect(line?.code == .rounded)
            }
            let records = try await world.backend.entries(of: world.person, from: World.day, through: World.day)
            #expect(Hours(seconds: records.map(\.durationSeconds).reduce(0, +)).description == "7.92")
            try await world.poll()
            let exact = UUID()
            _ = try await world.release(exact)
            #expect(try world.lines(exact).last?.message == nil)
        }
    }

    /// Returns the number of creates and updates in the back end.
    private func writes(_ world: borrowing BackendWorld) async throws -> Int {
        let stats = try await world.emulator.stats()
        return (stats["creates"] ?? 0) + (stats["updates"] ?? 0)
    }
}
