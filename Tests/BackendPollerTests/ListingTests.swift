import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import BackendPoller

/// Bulk listings with a PostgreSQL database and an SAP sandbox over HTTP.
@Suite(.ownThreads) struct ListingTests {
    static let poll = RealmContents.pollID(of: Poll.changesPerson)
    static let choices = [
        "teamMemberListings", "projectListings", "elementListings", "businessPartnerListings",
    ]

    @Test func changeOfOnePersonNeedsOneRunWithFewRequests() async throws {
        try await PollerWorld.runSAP { world in
            var records: [String] = []
            for person in 0..<24 {
                for day in [-100, -7, 0] { records.append(try await world.add(person, on: day)) }
            }
            try await world.completeRun(isFull: true)
            try await world.completeRun(isFull: false)
            try await world.expectAllObserved()
            let position = try world.position()
            try await world.completeRun(isFull: false)
            #expect(try world.position() == position)

            try await world.change(records[3 * 3], #""hundredths": 250"#)
            try await world.change(records[7 * 3], #""status": 60"#)
            try await world.change(records[9 * 3 + 1], #""status": 30"#)
            let new = try await world.add(5, on: -1)
            var before: [String: Int] = [:]
            for name in Self.choices + ["requests"] { before[name] = try await world.stats(name) }
            try await world.completeRun(isFull: false)
            // A page of each company code, and all records of the person with a missing one.
            #expect(try await world.stats("requests") - before["requests", default: 0] == 3)
            for name in Self.choices { #expect(try await world.stats(name) == before[name]) }
            #expect(try world.writtenCount(since: position) == 4)
            #expect(try world.seen(of: PollerWorld.email(3)).contains { $0.durationSeconds == 9_000 })
            #expect(try world.seen(of: PollerWorld.email(5)).contains { $0.backendId == new })
            #expect(try world.seen(of: PollerWorld.email(7)).count == 2)
            #expect(try world.seen(of: PollerWorld.email(9)).contains { $0.status == "approved" })
            try await world.expectAllObserved()
        }
    }

    /// A record that moves from an unread part to a read one is in neither.
    @Test func recordMovedToReadDayIsNotDeleted() async throws {
        try await PollerWorld.runSAP { world in
            let record = try await world.add(1, on: -80)
            try await world.completeRun(isFull: true)
            try world.restart()
            try world.beginRun(isFull: false)
            try await world.step(Self.poll)
            try await world.change(record, #""date": "\#(PollerWorld.today.adding(days: -10))""#)
            for _ in 0..<2 { try await world.step(Self.poll) }
            try await world.finishPolls()
            #expect(world.written.values.allSatisfy { !$0.contains("gone") })
            try await world.expectAllObserved()
        }
    }

    /// A correction of an approved record has another number, and may be on another day.
    @Test func successorOnAnotherDayReplacesRecordInOneRun() async throws {
        try await PollerWorld.runSAP { world in
            let marker = EntryMarker.marker(of: UUID())
            let record = try await world.add(1, on: -10, marker: marker)
            try await world.completeRun(isFull: true)
            try world.restart()
            try await world.change(record, #""status": 50"#)
            let successor = try await world.add(1, on: -100, marker: marker)
            try await world.completeRun(isFull: false)
            #expect(world.written.values.allSatisfy { !$0.contains("gone") })
            #expect(try world.seen(of: PollerWorld.email(1)).map(\.backendId) == [successor])
        }
    }

    /// The order of the parts does not decide which of two records with one marker is used.
    @Test(arguments: [-100, -10]) func copyWithSameMarkerDoesNotReplaceRecord(day: Int) async throws {
        try await PollerWorld.runSAP { world in
            let marker = EntryMarker.marker(of: UUID())
            let record = try await world.add(1, on: -50, marker: marker)
            try await world.completeRun(isFull: true)
            _ = try await world.add(1, on: day, marker: marker)
            let position = try world.position()
            for _ in 0..<2 {
                try world.restart()
                try await world.completeRun(isFull: false)
            }
            #expect(try world.writtenCount(since: position) == 0)
            #expect(try world.seen(of: PollerWorld.email(1)).map(\.backendId) == [record])
        }
    }

    @Test func failedPageDeletesNothingAndIsRetried() async throws {
        try await PollerWorld.runSAP { world in
            let records = [try await world.add(1, on: 0), try await world.add(2, on: -100)]
            try await world.completeRun(isFull: true)
            try world.restart()
            let position = try world.position()
            for record in records { try await world.change(record, #""hundredths": 200"#) }
            try world.beginRun(isFull: false)
            try await world.step(Self.poll)
            try await world.post("/sandbox/switches", #"{"rate503": 1}"#)
            // The first part is written, and the second one remains unreadable.
            for _ in 0..<3 { try await world.step(Self.poll) }
            #expect(try world.writtenCount(since: position) == 1)
            #expect(try world.openPolls() == [Self.poll])
            try await world.post("/sandbox/switches", #"{"rate503": 0}"#)
            try await world.finishPolls()
            #expect(try world.writtenCount(since: position) == 2)
            try await world.expectAllObserved()
        }
    }

    @Test func runResumesAfterCrash() async throws {
        try await PollerWorld.runSAP { world in
            let records = [try await world.add(1, on: 0), try await world.add(2, on: -100)]
            try await world.completeRun(isFull: true)
            try world.restart()
            for record in records { try await world.change(record, #""hundredths": 200"#) }
            try world.beginRun(isFull: false)
            for _ in 0..<2 { try await world.step(Self.poll) }
            try world.restart()
            let before = try await world.stats("companyListings")
            try await world.finishPolls()
            // Two parts of two company codes are left of three.
            #expect(try await world.stats("companyListings") == before + 4)
            try await world.expectAllObserved()
            #expect(world.written.values.allSatisfy { $0.count <= 2 })
            // The next run restarts, regardless of the rest of the earlier one.
            try await world.change(records[0], #""status": 60"#)
            try await world.completeRun(isFull: false)
            #expect(try world.seen(of: PollerWorld.email(1)).isEmpty)
        }
    }

    @Test func companyCodesAreSeparatedAndOtherPeopleSkipped() async throws {
        try await PollerWorld.runSAP { world in
            // Of the last two, the first has the number of the first one in the other company code.
            try await world.completeRun(isFull: true)
            let record = try await world.add(0, on: 0)
            let other = try await world.add(22, on: 0)
            _ = try await world.addRecord("999", "1010", on: 0)
            _ = try await world.addRecord("5", "2020", on: 0)
            _ = try await world.addRecord("0", "3030", on: 0)
            let position = try world.position()
            try await world.completeRun(isFull: false)
            #expect(try world.seen(of: PollerWorld.email(0)).map(\.backendId) == [record])
            #expect(try world.seen(of: PollerWorld.email(22)).map(\.backendId) == [other])
            #expect(try world.writtenCount(since: position) == 2)
            try await world.expectAllObserved()
        }
    }

    @Test func unreadableRecordAffectsOnlyItsPerson() async throws {
        try await PollerWorld.runSAP { world in
            let bad = try await world.add(4, on: -1)
            let good = try await world.add(4, on: -2)
            let other = try await world.add(5, on: -1)
            try await world.completeRun(isFull: true)
            try await world.change(bad, #""hoursText": "x""#)
            for record in [good, other] { try await world.change(record, #""hundredths": 200"#) }
            try await world.completeRun(isFull: false)
            let hours = [bad: 3_600, good: 7_200]
            let seen = try world.seen(of: PollerWorld.email(4))
            #expect(Dictionary(seen.map { ($0.backendId, $0.durationSeconds) }) { $1 } == hours)
            #expect(try world.seen(of: PollerWorld.email(5)).map(\.durationSeconds) == [7_200])
        }
    }

    /// A person who was never compared is compared, and listed from then on.
    @Test func newPersonIsComparedImmediately() async throws {
        try await PollerWorld.runSAP { world in
            try await world.completeRun(isFull: true)
            try world.addPerson(
                "new@example.com",
                reference: [
                    "personWorkAgreementExternalId": "777", "companyCode": "1010",
                    "businessPartnerUuid": PollerWorld.partner(1),
                ])
            var records: Set = [try await world.addRecord("777", "1010", on: -3)]
            try world.beginRun(isFull: false)
            #expect(try Set(world.openPolls()) == [Self.poll, RealmContents.pollID(of: "new@example.com")])
            try await world.finishPolls()
            #expect(try Set(world.seen(of: "new@example.com").map(\.backendId)) == records)
            records.insert(try await world.addRecord("777", "1010", on: -4))
            try await world.completeRun(isFull: false)
            #expect(try Set(world.seen(of: "new@example.com").map(\.backendId)) == records)
        }
    }

    /// An observation that was reverted meanwhile is compared again, although the listing is unchanged.
    @Test func foreignWriteInvalidatesListingCache() async throws {
        try await PollerWorld.runSAP { world in
            let record = try await world.add(1, on: 0)
            try await world.completeRun(isFull: true)
            for _ in 0..<2 { try await world.completeRun(isFull: false) }
            try await world.change(record, #""hundredths": 200"#)
            try world.beginRun(isFull: true)
            let person = RealmContents.pollID(of: PollerWorld.email(1))
            for _ in 0..<2 { try await world.step(person) }
            #expect(try world.seen(of: PollerWorld.email(1)).map(\.durationSeconds) == [7_200])
            try await world.change(record, #""hundredths": 100"#)
            try await world.finishPolls()
            try await world.completeRun(isFull: false)
            #expect(try world.seen(of: PollerWorld.email(1)).map(\.durationSeconds) == [3_600])
        }
    }

    @Test func fewPeopleAreComparedInEachRun() async throws {
        try await PollerWorld.runSAP(people: 5) { world in
            _ = try await world.add(1, on: 0, of: 5)
            for isFull in [true, false] { try await world.completeRun(isFull: isFull) }
            try world.beginRun(isFull: false)
            #expect(try world.openPolls().count == 5)
            #expect(try await world.stats("companyListings") == 0)
        }
    }

    /// More changes than the maximum per transaction.
    @Test func largeChangeIsWrittenInParts() async throws {
        try await PollerWorld.runSAP { world in
            let count = 2_100
            let (agreement, company) = PollerWorld.assignment(1, of: 24)
            let one =
                #"{"person": "\#(agreement)", "companyCode": "\#(company)", "date": "\#(PollerWorld.today)"}"#
            let (other, _) = PollerWorld.assignment(2, of: 24)
            let two = #"{"person": "\#(other)", "companyCode": "\#(company)", "date": "\#(PollerWorld.today)"}"#
            try await world.completeRun(isFull: true)
            let all = Array(repeating: one, count: count / 2) + Array(repeating: two, count: count / 2)
            try await world.post("/sandbox/records", #"{"records": [\#(all.joined(separator: ", "))]}"#)
            try world.beginRun(isFull: false)
            for _ in 0..<2 { try await world.step(Self.poll) }
            #expect(try world.seen(of: PollerWorld.email(1)).count == count / 2)
            #expect(try world.seen(of: PollerWorld.email(2)).isEmpty)
            let before = try await world.stats("requests")
            try await world.finishPolls()
            #expect(try world.seen(of: PollerWorld.email(2)).count == count / 2)
            // The other parts' pages are the only requests.
            #expect(try await world.stats("requests") - before <= 4)
        }
    }
}
