import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import TestSupport
import Testing

@testable import BackendPoller

@Suite(.ownThreads) struct PollRuleTests {
    private static let email = "ana@example.com"
    private static let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)

    @Test func unchangedRecordsAreNotWritten() {
        let records = [Self.entry("1"), Self.entry("2")]
        let first = PollRule.changes(known: [:], found: records, days: Self.days, email: Self.email)
        #expect(first.put.count == 2 && first.gone.isEmpty && first.ambiguous.isEmpty)
        #expect(
            PollRule.changes(known: first.put, found: records, days: Self.days, email: Self.email) == PollRule.Changes()
        )
    }

    /// An activity that depends on one of two projects, of which one is unreadable, and is below an unreadable group.
    @Test func storedNodesAndDependenciesAreKeptWhileRowsAreUnreadable() {
        let (group, lost, left, new, root) = (UUID(), UUID(), UUID(), UUID(), UUID())
        let (activity, always) = (UUID(), UUID())
        func node(_ name: String, below parent: UUID, _ dependencies: [UUID] = []) -> ReportingTreeNode {
            ReportingTreeNode(
                name: name, parent: parent, hasDependencies: !dependencies.isEmpty, dependencies: dependencies)
        }
        let stored = [
            group: node("group", below: root), lost: node("lost", below: root), left: node("left", below: group),
            activity: node("activity", below: root, [lost, left]), always: node("always", below: root),
        ]
        let records = [
            Identified(id: root, fields: ReportingTreeNode(name: "root")),
            Identified(id: left, fields: node("renamed", below: root)),
            Identified(id: new, fields: node("new", below: root)),
            Identified(id: activity, fields: node("activity", below: root, [left, new])),
            Identified(id: always, fields: node("always", below: root, [left])),
        ]
        let nodes = PollRule.nodes(records, keeping: stored)
        let byID = Dictionary(uniqueKeysWithValues: nodes.map { ($0.id, $0.fields) })
        #expect(Set(byID.keys) == Set(stored.keys).union(records.map(\.id)))
        #expect(byID[left] == node("renamed", below: group))
        #expect(byID[activity]?.dependencies == [left, new, lost])
        #expect(byID[always]?.hasDependencies == false)
        #expect(NodeTree(PollRule.nodes(records, keeping: byID)) == NodeTree(nodes), "it grows with each poll")
    }

    @Test func onlyDifferingRecordIsWritten() throws {
        let records = [Self.entry("1"), Self.entry("2")]
        let previous = PollRule.changes(known: [:], found: records, days: Self.days, email: Self.email).put
        var changed = records
        changed[1].status = .approved
        let changes = PollRule.changes(known: previous, found: changed, days: Self.days, email: Self.email)
        #expect(changes.put.values.map(\.status) == ["approved"] && changes.gone.isEmpty)
    }

    @Test func recordIsDeletedOnlyOnDaysThatWereRead() {
        let previous = PollRule.changes(
            known: [:], found: [Self.entry("1", day: 99), Self.entry("2", day: 100), Self.entry("3", day: 201)],
            days: Self.days, email: Self.email
        ).put
        let changes = PollRule.changes(known: previous, found: [], days: Self.days, email: Self.email)
        #expect(changes.gone == [RealmContents.entryID(of: Self.entry("2"), of: Self.email)])
    }

    /// The entry was in another state when the record was processed, or the record was created and deleted between two
    /// polls.
    @Test func contradictingEntryIsReportedInEachRun() {
        let id = RealmContents.entryID(of: Self.entry("1"), of: Self.email)
        func changes(_ previous: [UUID: SeenRecord], _ records: [BackendEntry], _ entry: TimeEntry, _ run: Int64)
            -> PollRule.Changes
        {
            PollRule.changes(
                known: previous, found: records, days: Self.days, email: Self.email, entries: [id: entry], run: run)
        }
        let previous = [id: SeenRecord(Self.entry("1"))]
        var entry = TimeEntry(backendId: "1", status: .released, entryDate: Day(daysSinceEpoch: 150))
        #expect(changes(previous, [Self.entry("1")], entry, 2) == PollRule.Changes())
        entry.status = .approved
        let reported = changes(previous, [Self.entry("1")], entry, 2).put
        #expect(reported[id]?.toldRun == 2)
        #expect(changes(reported, [Self.entry("1")], entry, 3).put[id]?.toldRun == 3)
        entry.status = .released
        #expect(changes(reported, [Self.entry("1")], entry, 3) == PollRule.Changes())
        // A record without an observation that does not exist.
        let missing = changes([:], [], entry, 2).put
        #expect(missing[id]?.status == "cancelled" && missing[id]?.backendId == "1")
        entry.backendId = nil
        entry.status = .invalid
        #expect(changes(missing, [], entry, 3).gone == [id])
    }

    /// Time stamps of whole seconds: a record may differ with the same version, and be equal with another one.
    @Test func updatesAreRecordsWithDifferentContent() {
        func updates(_ previous: [UUID: SeenRecord], _ reported: [BackendEntry]) -> [UUID: SeenRecord] {
            PollRule.updates(known: previous, reported: reported, days: Self.days, email: Self.email)
        }
        var record = Self.entry("1")
        record.version = "2015-03-30T12:00:00Z"
        let id = RealmContents.entryID(of: record, of: Self.email)
        let previous = updates([:], [record])
        #expect(previous == [id: SeenRecord(record)] && updates(previous, [record]).isEmpty)
        record.status = .approved
        #expect(updates(previous, [record])[id]?.status == "approved")
        // A report because of a contradicting entry is kept.
        var observed = SeenRecord(record)
        observed.toldRun = 7
        #expect(updates([id: observed], [record]).isEmpty)
        record.durationSeconds = 60
        #expect(updates([id: observed], [record])[id]?.toldRun == 7)
    }

    @Test func updatesAreOfFollowedDaysAndRecords() {
        func updates(_ previous: [UUID: SeenRecord], _ record: BackendEntry) -> Int {
            PollRule.updates(known: previous, reported: [record], days: Self.days, email: Self.email).count
        }
        let previous = [RealmContents.entryID(of: Self.entry("1"), of: Self.email): SeenRecord(Self.entry("1"))]
        for (day, isNew) in [(99, 0), (100, 1), (200, 1), (201, 0)] {
            #expect(updates([:], Self.entry("1", day: day)) == isNew, "\(day)")
            #expect(updates(previous, Self.entry("1", day: day)) == 1, "moved to \(day)")
        }
    }

    /// Only a read of all records can detect that the observed record was deleted.
    @Test func otherRecordWithSameMarkerIsLeftToFullComparison() {
        let id = UUID()
        var (first, copy) = (Self.entry("1"), Self.entry("2"))
        (first.marker, copy.marker) = (EntryMarker.marker(of: id), EntryMarker.marker(of: id))
        func updates(_ seen: SeenRecord?) -> [String] {
            let previous = seen.map { [id: $0] } ?? [:]
            return PollRule.updates(known: previous, reported: [first, copy], days: Self.days, email: Self.email).values
                .map(
                    \.backendId)
        }
        #expect(updates(nil) == ["1"])
        #expect(updates(SeenRecord(copy)).isEmpty)
        first.status = .approved
        #expect(updates(SeenRecord(Self.entry("1"))) == ["1"])
    }

    @Test func markerIdentifiesEntryAndCopyIsAmbiguous() {
        let id = UUID()
        var (first, copy) = (Self.entry("1"), Self.entry("2"))
        first.marker = EntryMarker.marker(of: id)
        copy.marker = first.marker
        for records in [[first, copy], [copy, first]] {
            let changes = PollRule.changes(known: [:], found: records, days: Self.days, email: Self.email)
            #expect(changes.put.mapValues(\.backendId) == [id: "1"] && changes.ambiguous == [id])
            // The observed record is kept.
            let previous = [id: SeenRecord(copy)]
            let later = PollRule.changes(known: previous, found: records, days: Self.days, email: Self.email)
            #expect(later.put.isEmpty && later.gone.isEmpty)
        }
    }

    @Test func markersRoundTrip() {
        for _ in 0..<100 {
            let id = UUID()
            #expect(EntryMarker.entry(of: EntryMarker.marker(of: id)) == id)
        }
        for strange in ["", "#", "#AAECAwQFBgcICQoLDA0ODz#", "#AAECAwQFBgcICQoLDA0O!!#"] {
            #expect(EntryMarker.entry(of: strange) == nil, "\(strange)")
        }
    }

    @Test func differencesAreOfSingleObjects() {
        let ids = [UUID(), UUID(), UUID()]
        let stored = [ids[0]: "a", ids[1]: "b"]
        let desired = [Identified(id: ids[1], fields: "c"), Identified(id: ids[2], fields: "d")]
        let differences = PollRule.Differences(stored: stored, desired: desired)
        #expect(differences.put == desired && differences.gone == [ids[0]])
    }

    @Test func runPollsChangesAndFullComparisonsAreLessFrequent() {
        let previous = ["ana": PollRunState(run: 1, dueAt: Self.time(0), finishedRun: 1)]
        func polls(isIncremental: Bool, isFullDue: Bool) -> [String] {
            ScheduleRule.polls(
                of: ["ana", "new"], known: previous,
                mode: ScheduleRule.PollMode(isIncremental: isIncremental, isFullDue: isFullDue))
        }
        #expect(polls(isIncremental: false, isFullDue: false) == ["ana", "new"])
        #expect(polls(isIncremental: false, isFullDue: true) == ["ana", "new"])
        #expect(polls(isIncremental: true, isFullDue: true) == [Poll.changesPerson, "ana", "new"])
        #expect(polls(isIncremental: true, isFullDue: false) == [Poll.changesPerson, "new"])
    }

    /// Six requests for each of 5,000 people every hour would be eight per second.
    @Test func fullComparisonsBySinglePersonHaveMinimumInterval() {
        func isFull(_ people: Int, bulkListing: Bool, changeFeed: Bool = false, hoursAgo: Int?) -> Bool {
            let capabilities = BackendCapabilities(
                approvedRecord: .isFinal, hasRejection: false, durationStepSeconds: 36, supportsChangeFeed: changeFeed,
                supportsBulkListing: bulkListing)
            return ScheduleRule.PollMode(
                capabilities, peopleCount: people, isFullDue: true, fullAge: hoursAgo.map { .seconds($0 * 3_600) }
            ).isFull
        }
        #expect(!isFull(5_000, bulkListing: true, hoursAgo: 11) && isFull(5_000, bulkListing: true, hoursAgo: 12))
        #expect(isFull(400, bulkListing: true, hoursAgo: 1) && !isFull(500, bulkListing: true, hoursAgo: 1))
        // Requested comparisons are immediate, and full comparisons of others are cheap.
        #expect(
            isFull(5_000, bulkListing: true, hoursAgo: nil)
                && isFull(5_000, bulkListing: true, changeFeed: true, hoursAgo: 1))
        #expect(isFull(5_000, bulkListing: false, hoursAgo: 1) && isFull(19, bulkListing: true, hoursAgo: 0))
        #expect(ScheduleRule.PollMode(nil, peopleCount: 5_000, isFullDue: false, fullAge: nil).isFull)
    }

    @Test func pendingPollIsRestartedOnlyIfOverdue() {
        func due(_ run: Int64, finished: Int64, age: Int64) -> Bool {
            let previous = ["ana": PollRunState(run: run, dueAt: Self.time(0), finishedRun: finished)]
            return ScheduleRule.due(
                ["ana"], known: previous, run: 5, now: Self.time(age), staleMax: .seconds(100)) == ["ana"]
        }
        #expect(due(4, finished: 4, age: 1))
        #expect(!due(4, finished: 3, age: 1))
        #expect(!due(4, finished: 3, age: 100))
        #expect(due(4, finished: 3, age: 101))
        #expect(!due(5, finished: 4, age: 1_000), "the run has it already")
        #expect(
            ScheduleRule.due(["new"], known: [:], run: 1, now: Self.time(0), staleMax: .seconds(1)) == ["new"])
    }

    private static func time(_ seconds: Int64) -> Timestamp { Timestamp(millisecondsSinceEpoch: seconds * 1_000) }

    private static func entry(_ id: String, day: Int = 150) -> BackendEntry {
        BackendEntry(
            id: id, marker: nil, day: Day(daysSinceEpoch: day), durationSeconds: 3_600, text: "work",
            status: .released, references: ["Project": "P1"])
    }
}
