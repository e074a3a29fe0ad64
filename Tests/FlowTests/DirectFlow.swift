import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import Synchronization
import Testing

/// Entries that are written straight into realms, through relay, broker, submitter and SAP, and their statuses back.
struct DirectFlow: Sendable {
    let cluster: LocalCluster
    let organisation: SmallOrganisation
    let plans: [PlannedEntry]
    /// The number in the back end of each entry's accounting code.
    private let elements: [UUID: String]

    /// Creates the people's realms.
    init(_ cluster: LocalCluster, people: Int, entries: Int, seed: UInt64) async throws {
        let organisation = SmallOrganisation(peopleCount: people)
        try await organisation.load(into: cluster)
        try await eventually("\(people) realms are filled") {
            var writer = try RealmWriter(cluster.conninfo)
            let count = try writer.initializedCount()
            return count == people ? nil : "\(count)"
        }
        var writer = try RealmWriter(cluster.conninfo)
        var choices: [String: Choices] = [:]
        var elements: [[ReportingSelection]: String] = [:]
        for person in organisation.people {
            let theirs = try writer.choices(of: person.email)
            choices[person.email] = theirs
            for selection in theirs.selections { elements[selection.reporting] = selection.element }
        }
        self.cluster = cluster
        self.organisation = organisation
        let plans = organisation.plan(entries, choices: choices, seed: seed)
        try #require(plans.count == entries)
        self.plans = plans
        self.elements = Dictionary(plans.map { ($0.id, elements[$0.first.reporting] ?? "") }) { first, _ in first }
    }

    /// Writes entries, and the edits and deletions, in the order of the plan with a pause between two.
    func write(from first: Int = 0, through count: Int? = nil, pause: Duration) async throws {
        var writer = try RealmWriter(cluster.conninfo)
        let plans = plans[first..<(count ?? plans.count)]
        for (index, plan) in plans.enumerated() {
            try writer.put(plan.id, of: plan.person.email, plan.first)
            // An entry changes again while it is in flight.
            if index >= Self.secondThoughtAfter {
                try second(plans[first + index - Self.secondThoughtAfter], &writer)
            }
            try await Task.sleep(for: pause)
        }
        for plan in plans.suffix(Self.secondThoughtAfter) { try second(plan, &writer) }
    }

    private static let secondThoughtAfter = 10

    private func second(_ plan: PlannedEntry, _ writer: inout RealmWriter) throws {
        switch plan.fate {
        case .kept: break
        case .edited: try writer.edit(plan.id, of: plan.person.email, plan.second)
        case .deleted: try writer.requestDeletion(plan.id, of: plan.person.email)
        }
    }

    /// Waits until every entry has ended, and compares entry by entry with what the back end really recorded.
    func verify(through count: Int? = nil) async throws {
        let plans = Array(plans.prefix(count ?? plans.count))
        try await eventually("all \(plans.count) entries have ended") {
            var writer = try RealmWriter(cluster.conninfo)
            let dead = try writer.dead()
            if !dead.isEmpty { throw ClusterFailure("is dead-lettered: \(dead)") }
            let unfinished = try writer.unfinished(plans)
            return unfinished.isEmpty ? nil : "\(unfinished.count) have not, such as \(unfinished.prefix(5))"
        }
        let live = Dictionary(grouping: try await cluster.recorded().filter(\.isLive), by: \.note)
        var expected: Set<String> = []
        for plan in plans {
            let marker = EntryMarker.marker(of: plan.id)
            let records = live.values.joined().filter { $0.note.hasSuffix(marker) }
            guard let desired = plan.expected else {
                #expect(records.isEmpty, "\(plan.id) was deleted, the back end has \(records)")
                continue
            }
            #expect(records.count == 1, "\(plan.id) is \(records.count) times in the back end")
            guard let record = records.first else { continue }
            expected.insert(record.record)
            #expect(record.note == EntryMarker.note(text: desired.text, marker: marker))
            #expect(record.person == plan.person.agreement)
            #expect(record.date == desired.entryDate?.description)
            #expect(Hours(record.hours) == desired.durationSeconds.map(Hours.init(seconds:)))
            #expect(record.wbsElement == elements[plan.id])
        }
        let unexpectedRecords = live.values.joined().filter { !expected.contains($0.record) }
        #expect(unexpectedRecords.isEmpty, "unexpected request: \(unexpectedRecords)")
    }
}

/// Waits until `problem` gives none. The bound is far beyond what it takes on the slowest machine.
func eventually(_ what: String, within: Duration = .seconds(300), _ problem: () async throws -> String?) async throws {
    let deadline = ContinuousClock.now + within
    while let found = try await problem() {
        guard .now < deadline else { throw ClusterFailure("not within \(within): \(what); \(found)") }
        try await Task.sleep(for: .milliseconds(100))
    }
}

extension LocalCluster {
    /// Parts that ended by themselves, with the ends of their logs.
    var fallen: [String] { supervisor.ended.map { "\($0.name) ended: \($0.process.logTail())" } }
}
