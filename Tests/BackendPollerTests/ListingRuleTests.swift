import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import BackendPoller

@Suite(.ownThreads) struct ListingRuleTests {
    static let email = "ana@example.com"
    static let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 110)

    static func entry(_ id: String, day: Int = 105, marker: String? = nil) -> BackendEntry {
        BackendEntry(
            id: id, marker: marker, day: Day(daysSinceEpoch: day), durationSeconds: 3_600, text: nil,
            status: .released, references: [:])
    }

    static func known(_ entries: [BackendEntry]) -> [UUID: SeenRecord] {
        Dictionary(entries.map { (RealmContents.entryID(of: $0, of: email), SeenRecord($0)) }) { first, _ in first }
    }

    static func compare(_ known: [BackendEntry], _ found: [BackendEntry]) -> ListingRule.Comparison {
        ListingRule.compare(known: Self.known(known), found: found, days: days, email: email)
    }

    @Test func differencesArePutAndMissingRecordsAreInconclusive() {
        let (one, two) = (Self.entry("1"), Self.entry("2"))
        #expect(Self.compare([one, two], [two, one]) == .put([:]))
        #expect(Self.compare([one], [one, two]) == .put(Self.known([two])))
        #expect(Self.compare([one, two], [one]) == .inconclusive)
        // Other days were not read.
        #expect(Self.compare([one, Self.entry("2", day: 99)], [one]) == .put([:]))
        // A record that moved from there.
        #expect(Self.compare([Self.entry("1", day: 99)], [one]) == .put(Self.known([one])))
    }

    @Test func anotherRecordWithSameMarkerIsInconclusive() {
        let marker = EntryMarker.marker(of: UUID())
        let (one, two) = (Self.entry("1", marker: marker), Self.entry("2", marker: marker))
        #expect(Self.compare([one], [two]) == .inconclusive)
        #expect(Self.compare([], [one, two]) == .inconclusive)
        var cancelled = one
        cancelled.status = .cancelled
        #expect(Self.compare([cancelled], [two]) == .put(Self.known([two])))
        #expect(Self.compare([cancelled], []) == .put([:]))
        let changes = ListingRule.changes(known: Self.known([cancelled]), all: [], days: Self.days, email: Self.email)
        #expect(changes.gone.isEmpty)
    }

    @Test func interruptedRunResumesAndNewRunRestarts() {
        let (first, last) = (Self.days.lowerBound, Self.days.upperBound)
        func remaining(_ cursor: String?) -> ClosedRange<Day>? {
            ListingCursor.remaining(of: Self.days, since: cursor, run: 7)
        }
        func cursor(_ run: Int64, _ day: Day) -> String { ListingCursor(run: run, day: day).description }
        for other in [nil, "", "changes 1 2", "listing", "listing x 2015-01-01", "listing 7 x", cursor(6, last)] {
            #expect(remaining(other) == Self.days)
        }
        #expect(remaining(cursor(7, last)) == first...last.adding(days: -1))
        #expect(remaining(cursor(7, first.adding(days: 1))) == first...first)
        #expect(remaining(cursor(7, first)) == nil)
        #expect(remaining(cursor(7, first.adding(days: -5))) == nil)
        #expect(remaining(cursor(7, last.adding(days: 5))) == Self.days)
    }

    @Test func bulkListingNeedsMinimumOfPeople() {
        func isIncremental(_ supportsChangeFeed: Bool, _ supportsBulkListing: Bool, _ count: Int) -> Bool {
            ScheduleRule.isIncremental(
                BackendCapabilities(
                    approvedRecord: .isFinal, hasRejection: false, durationStepSeconds: 1,
                    supportsChangeFeed: supportsChangeFeed, supportsBulkListing: supportsBulkListing),
                peopleCount: count)
        }
        #expect(!isIncremental(false, true, 19) && isIncremental(false, true, 20))
        #expect(isIncremental(true, false, 1) && !isIncremental(false, false, 1_000))
    }

    @Test func listingCacheKeepsDaysUntilEnvironmentIsRemoved() {
        var listings = ListingCache(dayCount: 5)
        let environment = EnvironmentID(rawValue: 1)
        let day = Day(daysSinceEpoch: 98)
        func position(_ hashes: [Int], _ day: Day) -> Int64? {
            listings.position(of: Self.email, hashes, from: day, in: environment)
        }
        #expect(position([1], day) == nil)
        listings.insert(Self.email, [1, 2, 3], from: day, at: 10, in: environment)
        listings.insert(Self.email, [4], from: day.adding(days: 3), at: 20, in: environment)
        #expect(position([1, 2, 3, 4], day) == 10 && position([4], day.adding(days: 3)) == 20)
        #expect(position([1, 2, 4], day) == nil && position([1, 2, 3, 4, 5], day) == nil)
        // The day after the last one replaces the first one.
        listings.insert(Self.email, [6], from: day.adding(days: 5), at: 30, in: environment)
        #expect(position([1], day) == nil && position([2, 3, 4], day.adding(days: 1)) == 10)
        listings.removeAll(in: environment)
        #expect(position([2], day.adding(days: 1)) == nil)
    }
}
