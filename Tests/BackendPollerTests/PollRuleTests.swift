import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import Testing

@testable import BackendPoller

@Suite struct PollRuleTests {
    private static let email = "ana@example.com"
    private static let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)

    @Test func whatIsTheSameIsNotWritten() {
        let found = [Self.entry("1"), Self.entry("2")]
        let first = PollRule.changes(known: [:], found: found, days: Self.days, email: Self.email)
        #expect(first.put.count == 2 && first.gone.isEmpty && first.ambiguous.isEmpty)
        #expect(
            PollRule.changes(known: first.put, found: found, days: Self.days, email: Self.email) == PollRule.Changes())
    }

    /// An activity that needs one of two projects, of which one is unreadable, and is below an unreadable group.
    @Test func storedNodesAndDependenciesStayWhileRowsAreUnreadable() {
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
        let found = [
            Identified(id: root, fields: ReportingTreeNode(name: "root")),
            Identified(id: left, fields: node("renamed", below: root)),
            Identified(id: new, fields: node("new", below: root)),
            Identified(id: activity, fields: node("activity", below: root, [left, new])),
            Identified(id: always, fields: node("always", below: root, [left])),
        ]
        let nodes = PollRule.nodes(found, keeping: stored)
        let byID = Dictionary(uniqueKeysWithValues: nodes.map { ($0.id, $0.fields) })
        #expect(Set(byID.keys) == Set(stored.keys).union(found.map(\.id)))
        #expect(byID[left] == node("renamed", below: group))
        #expect(byID[activity]?.dependencies == [left, new, lost])
        #expect(byID[always]?.hasDependencies == false)
        #expect(NodeTree(PollRule.nodes(found, keeping: byID)) == NodeTree(nodes), "it grows with each poll")
    }

    @Test func aRecordThatDiffersIsWrittenAlone() throws {
        let found = [Self.entry("1"), Self.entry("2")]
        let known = PollRule.changes(known: [:], found: found, days: Self.days, email: Self.email).put
        var changed = found
        changed[1].status = .approved
        let changes = PollRule.changes(known: known, found: changed, days: Self.days, email: Self.email)
        #expect(changes.put.values.map(\.status) == ["approved"] && changes.gone.isEmpty)
    }

    @Test func aRecordIsGoneOnlyOnDaysThatWereRead() {
        let known = PollRule.changes(
            known: [:], found: [Self.entry("1", day: 99), Self.entry("2", day: 100), Self.entry("3", day: 201)],
            days: Self.days, email: Self.email
        ).put
        let changes = PollRule.changes(known: known, found: [], days: Self.days, email: Self.email)
        #expect(changes.gone == [RealmContents.entryID(of: Self.entry("2"), of: Self.email)])
    }

    /// When the record was judged it was otherwise for a moment, or it came and went between two polls.
    @Test func anEntryThatSaysSomethingElseIsToldAgainInEachRun() {
        let id = RealmContents.entryID(of: Self.entry("1"), of: Self.email)
        func changes(_ known: [UUID: SeenRecord], _ found: [BackendEntry], _ entry: TimeEntry, _ run: Int64)
            -> PollRule.Changes
        {
            PollRule.changes(
                known: known, found: found, days: Self.days, email: Self.email, entries: [id: entry], run: run)
        }
        let known = [id: SeenRecord(Self.entry("1"))]
        var entry = TimeEntry(backendId: "1", status: .released, entryDate: Day(daysSinceEpoch: 150))
        #expect(changes(known, [Self.entry("1")], entry, 2) == PollRule.Changes())
        entry.status = .approved
        let told = changes(known, [Self.entry("1")], entry, 2).put
        #expect(told[id]?.toldRun == 2)
        #expect(changes(told, [Self.entry("1")], entry, 3).put[id]?.toldRun == 3)
        entry.status = .released
        #expect(changes(told, [Self.entry("1")], entry, 3) == PollRule.Changes())
        // Never seen, and not there.
        let missing = changes([:], [], entry, 2).put
        #expect(missing[id]?.status == "cancelled" && missing[id]?.backendId == "1")
        entry.backendId = nil
        entry.status = .invalid
        #expect(changes(missing, [], entry, 3).gone == [id])
    }

    /// Time stamps of whole seconds: a record may differ under the same version, and be the same under another.
    @Test func newsAreRecordsThatSaySomethingElse() {
        func news(_ known: [UUID: SeenRecord], _ told: [BackendEntry]) -> [UUID: SeenRecord] {
            PollRule.news(known: known, told: told, days: Self.days, email: Self.email)
        }
        var record = Self.entry("1")
        record.version = "2015-03-30T12:00:00Z"
        let id = RealmContents.entryID(of: record, of: Self.email)
        let known = news([:], [record])
        #expect(known == [id: SeenRecord(record)] && news(known, [record]).isEmpty)
        record.status = .approved
        #expect(news(known, [record])[id]?.status == "approved")
        // What was told again because its entry said something else stays that.
        var told = SeenRecord(record)
        told.toldRun = 7
        #expect(news([id: told], [record]).isEmpty)
        record.durationSeconds = 60
        #expect(news([id: told], [record])[id]?.toldRun == 7)
    }

    @Test func newsAreOfTheDaysThatAreFollowedAndFromThere() {
        func news(_ known: [UUID: SeenRecord], _ record: BackendEntry) -> Int {
            PollRule.news(known: known, told: [record], days: Self.days, email: Self.email).count
        }
        let known = [RealmContents.entryID(of: Self.entry("1"), of: Self.email): SeenRecord(Self.entry("1"))]
        for (day, isNew) in [(99, 0), (100, 1), (200, 1), (201, 0)] {
            #expect(news([:], Self.entry("1", day: day)) == isNew, "\(day)")
            #expect(news(known, Self.entry("1", day: day)) == 1, "moved to \(day)")
        }
    }

    /// Whether the record that was there is gone is seen only where all are read.
    @Test func newsOfAnotherRecordWithTheSameMarkerAreLeftToTheFullComparison() {
        let id = UUID()
        var (first, copy) = (Self.entry("1"), Self.entry("2"))
        (first.marker, copy.marker) = (EntryMarker.marker(of: id), EntryMarker.marker(of: id))
        func news(_ known: SeenRecord?) -> [String] {
            let known = known.map { [id: $0] } ?? [:]
            return PollRule.news(known: known, told: [first, copy], days: Self.days, email: Self.email).values.map(
                \.backendId)
        }
        #expect(news(nil) == ["1"])
        #expect(news(SeenRecord(copy)).isEmpty)
        first.status = .approved
        #expect(news(SeenRecord(Self.entry("1"))) == ["1"])
    }

    @Test func theMarkerNamesTheEntryAndACopyOfItIsReported() {
        let id = UUID()
        var (first, copy) = (Self.entry("1"), Self.entry("2"))
        first.marker = EntryMarker.marker(of: id)
        copy.marker = first.marker
        for found in [[first, copy], [copy, first]] {
            let changes = PollRule.changes(known: [:], found: found, days: Self.days, email: Self.email)
            #expect(changes.put.mapValues(\.backendId) == [id: "1"] && changes.ambiguous == [id])
            // The one that was there stays.
            let known = [id: SeenRecord(copy)]
            let later = PollRule.changes(known: known, found: found, days: Self.days, email: Self.email)
            #expect(later.put.isEmpty && later.gone.isEmpty)
        }
    }

    @Test func markersAreReadAsTheyAreWritten() {
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
        let wanted = [Identified(id: ids[1], fields: "c"), Identified(id: ids[2], fields: "d")]
        let differences = PollRule.Differences(stored: stored, wanted: wanted)
        #expect(differences.put == wanted && differences.gone == [ids[0]])
    }

    @Test func aRunIsOfChangesAndOnASlowerBeatOfEverybody() {
        let known = ["ana": ScheduleRule.Known(run: 1, dueAt: Self.time(0), finishedRun: 1)]
        func polls(tellsChanges: Bool, isFullDue: Bool) -> [String] {
            ScheduleRule.polls(
                of: ["ana", "new"], known: known,
                beat: ScheduleRule.Beat(tellsChanges: tellsChanges, isFullDue: isFullDue))
        }
        #expect(polls(tellsChanges: false, isFullDue: false) == ["ana", "new"])
        #expect(polls(tellsChanges: false, isFullDue: true) == ["ana", "new"])
        #expect(polls(tellsChanges: true, isFullDue: true) == [Poll.ofChanges, "ana", "new"])
        #expect(polls(tellsChanges: true, isFullDue: false) == [Poll.ofChanges, "new"])
    }

    /// Six requests for each of 5,000 people every hour would be eight a second.
    @Test func whoIsAskedForSinglyIsNotAskedForTooOften() {
        func isFull(_ people: Int, lists: Bool, tells: Bool = false, hoursAgo: Int?) -> Bool {
            let capabilities = BackendCapabilities(
                approvedRecord: .isFinal, hasRejection: false, durationStepSeconds: 36, tellsChanges: tells,
                listsEverybody: lists)
            return ScheduleRule.Beat(
                capabilities, peopleCount: people, isFullDue: true, fullAge: hoursAgo.map { .seconds($0 * 3_600) }
            ).isFull
        }
        #expect(!isFull(5_000, lists: true, hoursAgo: 11) && isFull(5_000, lists: true, hoursAgo: 12))
        #expect(isFull(400, lists: true, hoursAgo: 1) && !isFull(500, lists: true, hoursAgo: 1))
        // What is asked for comes at once, and others' full comparisons are cheap.
        #expect(isFull(5_000, lists: true, hoursAgo: nil) && isFull(5_000, lists: true, tells: true, hoursAgo: 1))
        #expect(isFull(5_000, lists: false, hoursAgo: 1) && isFull(19, lists: true, hoursAgo: 0))
        #expect(ScheduleRule.Beat(nil, peopleCount: 5_000, isFullDue: false, fullAge: nil).isFull)
    }

    @Test func aPollUnderWayIsNotOvertakenUnlessItIsOverdue() {
        func due(_ run: Int64, finished: Int64, age: Int64) -> Bool {
            let known = ["ana": ScheduleRule.Known(run: run, dueAt: Self.time(0), finishedRun: finished)]
            return ScheduleRule.due(
                ["ana"], known: known, run: 5, now: Self.time(age), staleMax: .seconds(100)) == ["ana"]
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
