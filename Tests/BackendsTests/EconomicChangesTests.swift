import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import Backends

/// The change feed of e-conomic, independently of its clocks.
@Suite(.ownThreads) struct EconomicChangesTests {
    typealias Fixture = EconomicFixture

    // MARK: The cursor

    private static let choices = UUID(name: "choices", in: RealmContents.userID(of: "nobody"))

    @Test func cursorRoundTrips() {
        let plain = EconomicCursor(since: 1_427_673_600, choices: Self.choices)
        #expect(plain.description == "changes 2015-03-30T00:00:00Z \(Self.choices.text)")
        var cursor = plain
        _ = cursor.advance(newest: 1_427_673_605, at: 1_427_673_700, next: "34 781")
        #expect(cursor.description.hasSuffix("2015-03-30T00:01:40Z 2015-03-30T00:00:05Z 1 34%20781 34 781"))
        let earlier = EconomicCursor(plain.description + " 2015-03-30T00:01:40Z 2015-03-30T00:00:05Z 34781")
        #expect(earlier?.pass?.page == "34781" && earlier?.pass?.trail == PageTrail())
        for cursor in [plain, cursor] { #expect(EconomicCursor(cursor.description) == cursor) }
        for strange in ["", "changes", "changes now now", "changes 2015-03-30T00:00:00Z x", "sap " + plain.description]
        {
            #expect(EconomicCursor(strange) == nil, "\(strange)")
        }
    }

    /// Previous position, start of the pass, newest time stamp → next position.
    @Test(arguments: [(100, 200, 150, 150), (100, 200, 250, 200), (100, 200, nil, 100), (100, 90, nil, 90)])
    func passStartsNoLaterThanPreviousPass(since: Int, began: Int, newest: Int?, expected: Int) {
        var cursor = EconomicCursor(since: since, choices: Self.choices)
        _ = cursor.advance(newest: newest, at: began, next: "7")
        #expect(cursor.since == since && cursor.pass?.beganAt == began)
        // Later pages are returned later, and may contain newer changes.
        _ = cursor.advance(newest: nil, at: began + 1_000, next: nil)
        #expect(cursor == EconomicCursor(since: expected, choices: Self.choices))
    }

    // MARK: Clocks

    /// Both of e-conomic's clocks are wrong by the same amount: no change is lost, with hardly any overlap.
    @Test(arguments: [-600, 600]) func localClockDifferenceLosesNoChanges(skew: Int) async throws {
        try await Fixture.run(settings: { $0.changesOverlap = .seconds(5) }) { economic in
            try await economic.switches(#"{"clockSkewSeconds": \#(skew), "dateSkewSeconds": \#(skew)}"#)
            try await expectAllReported(economic)
        }
    }

    /// The clocks of `lastUpdated` and of `Date` differ, which the overlap covers.
    @Test(arguments: [(-600, 0), (600, 0), (0, -600), (0, 600), (-300, 300)])
    func overlapCoversDifferencesOfBackendClocks(clock: Int, date: Int) async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"clockSkewSeconds": \#(clock), "dateSkewSeconds": \#(date)}"#)
            try await expectAllReported(economic)
        }
    }

    private func expectAllReported(_ economic: Fixture) async throws {
        var reading = ChangesReading(economic)
        try await reading.readToTheEnd()
        for index in 0..<3 {
            let id = try await economic.backend.create(Fixture.submission(text: "\(index)"))
            try await reading.readToTheEnd()
            #expect(reading.reported[id]?.text == "\(index)")
            try await economic.change(#"{"number": \#(id), "isApproved": true}"#)
            try await reading.readToTheEnd()
            #expect(reading.reported[id]?.status == .approved)
        }
    }

    /// A record that became visible after later changes were read is still reported.
    @Test func lateVisibleRecordIsReported() async throws {
        try await Fixture.run { economic in
            var reading = ChangesReading(economic)
            try await reading.readToTheEnd()
            try await economic.switches(#"{"visibleAfterMs": 1500, "clockSkewSeconds": -30}"#)
            let late = try await economic.backend.create(Fixture.submission())
            try await economic.switches(#"{"visibleAfterMs": 0, "clockSkewSeconds": 0}"#)
            let early = try await economic.backend.create(Fixture.submission())
            try await reading.readToTheEnd()
            #expect(reading.reported[early] != nil && reading.reported[late] == nil)
            #expect(
                try await economic.eventually {
                    try await reading.readToTheEnd()
                    return reading.reported[late] != nil
                })
        }
    }

    @Test func recordsWithEqualTimeStampsAreAllReported() async throws {
        try await Fixture.run(settings: { $0.changesOverlap = .zero }) { economic in
            try await economic.switches(#"{"pageItemsMax": 2}"#)
            var reading = ChangesReading(economic)
            try await reading.readToTheEnd()
            var ids: Set<String> = []
            for _ in 0..<7 {
                ids.insert(try await economic.backend.create(Fixture.submission()))
                _ = try await reading.readPart()
            }
            try await reading.readToTheEnd()
            #expect(Set(reading.reported.keys) == ids)
        }
    }

    // MARK: Pages that shift

    /// While pages of two are read, records are created, changed and deleted, and e-conomic's time passes. Without any
    /// overlap, the final state of all records is reported.
    @Test(arguments: Seeds.random(3, for: "changes while pages are read"))
    func shiftingPagesLoseNoChanges(seed: UInt64) async throws {
        try await Fixture.run(settings: { $0.changesOverlap = .zero }) { economic in
            var random = SplitMix64(seed: seed)
            var reading = ChangesReading(economic)
            try await reading.readToTheEnd()
            var skew = 0
            var live: [String] = []
            for _ in 0..<150 {
                skew += Int.random(in: 0...20, using: &random)
                try await economic.switches(
                    #"{"pageItemsMax": 2, "clockSkewSeconds": \#(skew), "dateSkewSeconds": \#(skew)}"#)
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<2: live.append(try await economic.backend.create(Fixture.submission()))
                case 2..<4:
                    guard let id = live.randomElement(using: &random) else { continue }
                    let hours = Int.random(in: 1...99, using: &random)
                    try await economic.change(#"{"number": \#(id), "numberOfHours": \#(hours)}"#)
                case 4:
                    guard live.count > 3, let index = live.indices.randomElement(using: &random) else { continue }
                    try await economic.change(#"{"number": \#(live.remove(at: index)), "isDeleted": true}"#)
                default: _ = try await reading.readPart()
                }
            }
            try await reading.readToTheEnd()
            try await reading.readToTheEnd()
            for id in live {
                #expect(
                    reading.reported[id] == (try await economic.backend.readBack(id, of: Fixture.ana)), "seed \(seed)")
            }
        }
    }

    /// A cursor that e-conomic rejects does not block later passes.
    @Test func passWithRejectedPageIsRestarted() async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"pageItemsMax": 2}"#)
            var reading = ChangesReading(economic)
            try await reading.readToTheEnd()
            var ids: Set<String> = []
            for _ in 0..<5 { ids.insert(try await economic.backend.create(Fixture.submission())) }
            #expect(try await reading.readPart() && reading.reported.count == 2)
            reading.invalidatePage()
            #expect(try await !reading.readPart() && reading.reported.count == 2)
            try await reading.readToTheEnd()
            #expect(Set(reading.reported.keys) == ids)
        }
    }

    // MARK: Circular pages

    /// The pages of the cursors 1, …, n, then those from one of them again.
    @Test(arguments: 1...40) func cycleIsDetectedAtAnyPage(countMax: Int) {
        for beginning in 1...countMax {
            var trail = PageTrail()
            var (page, count) = (0, 0)
            repeat {
                page = page == countMax ? beginning : page + 1
                count += 1
            } while count < 1_000 && trail.follow("\(page)")
            #expect((countMax + 1...3 * countMax).contains(count))
        }
    }

    /// Some of the pages are read, and the next run restarts.
    @Test func circularChangePagesEndWithProblem() async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"pageItemsMax": 2}"#)
            var reading = ChangesReading(economic)
            try await reading.readToTheEnd()
            for _ in 0..<5 { _ = try await economic.backend.create(Fixture.submission()) }
            try await economic.switches(#"{"pagesAreCircular": true}"#)
            var count = 0
            while try await reading.readPart(), count < 100 { count += 1 }
            #expect(count < 9 && reading.reported.count == 5)
            #expect(reading.problem?.contains("circular pages") == true)
            _ = try await economic.backend.create(Fixture.submission())
            try await economic.switches(#"{"pagesAreCircular": false}"#)
            try await reading.readToTheEnd()
            #expect(reading.reported.count == 6 && reading.problem == nil)
        }
    }

    @Test func circularListingPagesFailEarly() async throws {
        try await Fixture.run { economic in
            for _ in 0..<5 { _ = try await economic.backend.create(Fixture.submission()) }
            try await economic.switches(#"{"pageItemsMax": 2, "pagesAreCircular": true}"#)
            let before = try await economic.stats()["listings"] ?? 0
            let day = Fixture.submission().day
            let error = await #expect(throws: BackendError.self) {
                _ = try await economic.backend.entries(of: Fixture.ana, from: day, through: day)
            }
            #expect("\(String(describing: error))".contains("circular pages"))
            #expect(try await economic.stats()["listings"] ?? 0 <= before + 9)
        }
    }

    // MARK: Shared listings

    @Test func changedChoicesAreReportedOnce() async throws {
        try await Fixture.run(settings: { $0.listingAgeMax = .zero }) { economic in
            var reading = ChangesReading(economic)
            for _ in 0..<2 { try await reading.readToTheEnd() }
            #expect(reading.choicesChangedCount == 0)
            try await economic.post(
                "/sandbox/organisation",
                #"{"employees": [], "projects": [{"number": 17, "name": "New"}], "activities": []}"#)
            for _ in 0..<2 { try await reading.readToTheEnd() }
            #expect(reading.choicesChangedCount == 1)
        }
    }

    @Test func sharedListingsAreReadOnce() async throws {
        try await Fixture.run { economic in
            try await withThrowingTaskGroup(of: ReportingData.self) { group in
                for index in 0..<20 {
                    group.addTask {
                        try await economic.backend.reportingData(of: index % 2 == 0 ? Fixture.ana : Fixture.bo)
                    }
                }
                for try await data in group { #expect(!data.nodes.isEmpty) }
            }
            #expect(try await economic.stats()["projectListings"] == 1)
        }
        try await Fixture.run(settings: { $0.listingAgeMax = .zero }) { economic in
            for _ in 0..<2 { _ = try await economic.backend.reportingData(of: Fixture.ana) }
            #expect(try await economic.stats()["projectListings"] == 2)
        }
    }

    /// A cancelled call does not cancel others that share the read.
    @Test func cancelledCallDoesNotCancelOthers() async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"latencyMs": 300}"#)
            let first = Task { try await economic.backend.reportingData(of: Fixture.ana) }
            let second = Task { try await economic.backend.reportingData(of: Fixture.bo) }
            #expect(try await economic.eventually { try await economic.stats()["projectListings"] == 1 })
            first.cancel()
            #expect(try await !second.value.nodes.isEmpty)
            await #expect(throws: BackendError.self) { try await first.value }
        }
    }

    @Test func failureIsNotCached() async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"rate503": 1}"#)
            await #expect(throws: BackendError.self) { try await economic.backend.reportingData(of: Fixture.ana) }
            try await economic.switches(#"{"rate503": 0}"#)
            #expect(try await !economic.backend.reportingData(of: Fixture.ana).nodes.isEmpty)
        }
    }
}

/// Follows the changes of Ana's records.
private struct ChangesReading {
    let economic: EconomicFixture
    private var cursor: String?
    private(set) var reported: [String: BackendEntry] = [:]
    private(set) var choicesChangedCount = 0
    private(set) var problem: String?

    init(_ economic: EconomicFixture) { self.economic = economic }

    mutating func readPart() async throws -> Bool {
        let part = try await economic.backend.changes(of: [EconomicFixture.ana], since: cursor)
        (cursor, problem) = (part.cursor, part.problem)
        for change in part.changes { reported[change.entry.id] = change.entry }
        if part.haveChoicesChanged { choicesChangedCount += 1 }
        return part.hasMore
    }

    /// Makes the next page's cursor invalid.
    mutating func invalidatePage() {
        cursor = cursor.map { $0.split(separator: " ").dropLast().joined(separator: " ") + " gone" }
    }

    mutating func readToTheEnd() async throws { while try await readPart() {} }
}
