import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@Suite(.ownThreads) struct SAPListingTests {
    typealias Fixture = SAPFixture

    static let (from, through) = (Fixture.day("2015-03-01"), Fixture.day("2015-03-31"))

    private func record(_ person: String, _ day: String, _ more: String = "") -> String {
        #"{"person": "O'\#(person)", "companyCode": "1010", "date": "\#(day)"\#(more)}"#
    }

    private func add(_ records: [String], to sap: Fixture) async throws {
        try await sap.post("/sandbox/records", #"{"records": [\#(records.joined(separator: ", "))]}"#)
    }

    /// Lists all days, part by part.
    private func everything(_ sap: Fixture) async throws -> (entries: [BackendEntry], parts: Int) {
        var (entries, parts, last) = ([BackendEntry](), 0, Self.through)
        while last >= Self.from {
            let part = try await sap.backend.listing(of: [Fixture.ana, Fixture.bo], from: Self.from, through: last)
            #expect(part.from >= Self.from && part.from <= last)
            entries += part.entries.values.flatMap(\.self)
            last = part.from.adding(days: -1)
            parts += 1
        }
        return (entries, parts)
    }

    /// Pages end in the middle of days; a system returns fewer rows than requested without reporting it.
    @Test(arguments: [(3, 2, 0), (10, 2, 3), (10, 10, 0), (5_000, 500, 0)])
    func allPagesAreRead(rowsMax: Int, lastRowsMax: Int, cap: Int) async throws {
        try await Fixture.run(settings: {
            $0.listingRowsMax = rowsMax
            $0.pageRowsMax = lastRowsMax
        }) { sap in
            try await sap.switches(#"{"rowsMax": \#(cap)}"#)
            let days = (10...30).flatMap { [$0, $0] } + Array(repeating: 15, count: 7)
            try await add(days.map { record($0 % 2 == 0 ? "ana" : "bo", "2015-03-\($0)") }, to: sap)
            for _ in 0..<2 {
                let matches = try await everything(sap).entries
                #expect(Set(matches.map(\.id)).count == days.count && matches.count == days.count)
            }
        }
    }

    /// Known row counts determine the number of days per request.
    @Test func nextListingNeedsFewerRequests() async throws {
        try await Fixture.run(settings: { $0.listingRowsMax = 40 }) { sap in
            try await add((10...14).map { record("ana", "2015-03-\($0)") }, to: sap)
            #expect(try await everything(sap).parts == 4)
            #expect(try await everything(sap).parts == 1)
            // A day with more rows than before.
            try await add(Array(repeating: record("ana", "2015-03-12"), count: 300), to: sap)
            #expect(try await everything(sap).entries.count == 305)
            #expect(try await everything(sap).entries.count == 305)
        }
    }

    @Test func failedPageFailsListing() async throws {
        try await Fixture.run(settings: {
            $0.listingRowsMax = 3
            $0.pageRowsMax = 2
        }) { sap in
            try await add((10...19).map { record("ana", "2015-03-\($0)") }, to: sap)
            try await sap.switches(#"{"rate503OnReads": 0.3, "seed": 7}"#)
            var (wholeCount, failedCount) = (0, 0)
            for _ in 0..<60 {
                do throws(BackendError) {
                    let part = try await sap.backend.listing(
                        of: [Fixture.ana], from: Fixture.day("2015-03-15"), through: Fixture.day("2015-03-18"))
                    let days = part.from.days(until: Fixture.day("2015-03-18")) + 1
                    #expect(part.entries[Fixture.ana.email]?.count == days)
                    wholeCount += 1
                } catch {
                    #expect(error.kind == "notProcessed")
                    failedCount += 1
                }
            }
            #expect(wholeCount > 0 && failedCount > 0)
        }
    }

    /// Records are created, moved and deleted while pages are read: unchanged ones are listed each time.
    @Test func unchangedRecordsAreListedWhileOthersChange() async throws {
        try await Fixture.run(settings: {
            $0.listingRowsMax = 4
            $0.pageRowsMax = 2
        }) { sap in
            let moving = (0..<20).map { _ in record("bo", "2015-03-20") }
            let staying = (0..<20).map { _ in record("ana", "2015-03-20") }
            try await add(zip(moving, staying).flatMap { [$0, $1] }, to: sap)
            let churn = Task {
                var round = 0
                while !Task.isCancelled {
                    round += 1
                    let number = String(String(1_000_000_000_001 + round % 20 * 2).suffix(12))
                    let day = round / 20 % 2 == 0 ? "2015-01-01" : "2015-03-20"
                    try await sap.post(
                        "/sandbox/records", #"{"records": [{"record": "\#(number)", "date": "\#(day)"}]}"#)
                }
            }
            let day = Fixture.day("2015-03-20")
            for _ in 0..<100 {
                guard
                    let part = try? await sap.backend.listing(
                        of: [Fixture.ana, Fixture.bo], from: day, through: day)
                else { continue }
                #expect(part.entries[Fixture.ana.email]?.count == 20)
            }
            churn.cancel()
            _ = await churn.result
            let part = try await sap.backend.listing(of: [Fixture.ana], from: day, through: day)
            #expect(part.entries[Fixture.ana.email]?.count == 20)
        }
    }

    @Test func unreadableRowAffectsOnlyItsPerson() async throws {
        try await Fixture.run { sap in
            try await add(
                [
                    record("ana", "2015-03-20"), record("ana", "2015-03-20", #", "hoursText": "x""#),
                    record("bo", "2015-03-20"), record("stranger", "2015-03-20", #", "hoursText": "x""#),
                ], to: sap)
            let part = try await sap.backend.listing(
                of: [Fixture.ana, Fixture.bo], from: Self.from, through: Self.through)
            #expect(part.unreadable == [Fixture.ana.email])
            #expect(part.entries.mapValues(\.count) == [Fixture.ana.email: 1, Fixture.bo.email: 1])
        }
    }
}
