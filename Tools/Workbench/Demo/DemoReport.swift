import Essentials
import Foundation
import Model

/// The figures at the end, for people and, as JSON, for scripts.
struct DemoReport: Encodable, Sendable {
    struct Latency: Encodable, Sendable {
        let count: Int
        let p50Milliseconds: Double
        let p95Milliseconds: Double
        let p99Milliseconds: Double

        /// - Returns: `nil` when nothing was measured.
        init?(_ percentiles: Percentiles) {
            guard let p50 = percentiles[50], let p95 = percentiles[95], let p99 = percentiles[99] else { return nil }
            count = percentiles.count
            p50Milliseconds = p50.inSeconds * 1000
            p95Milliseconds = p95.inSeconds * 1000
            p99Milliseconds = p99.inSeconds * 1000
        }
    }

    var people = 0
    /// One of each role, who can log in: the role, and the e-mail address.
    var examples: [String: String] = [:]
    /// Entries in the realms by status.
    var entries: [String: Int] = [:]
    /// Invalid entries by what their status logs say.
    var invalidReasons: [String: Int] = [:]
    /// Made, and deleted again, as drafts or after their release.
    var mistakesDeleted = 0
    var rowsTotal = 0
    /// Source rows all of whose entries ended as expected in realm and back end.
    var rowsAccounted = 0
    /// Tasks, positions and appointments.
    var fieldwork = Verdict.Fieldwork()
    /// Notices and mirrors of defects.
    var defects = Verdict.Defects()
    var mutations = 0
    /// Changes of published kinds while the devices worked.
    var events = 0
    var eventsPerSecond = 0.0
    var releasedAfter: Latency?
    var steps: [DemoConsole.Step] = []
    var differenceCount = 0
    /// The first ones.
    var differences: [String] = []

    static let differencesShownMax = 50

    /// The table and the verdict.
    var text: String {
        var lines = [""]
        func row(_ name: String, _ value: String) {
            lines.append("  " + name.padding(toLength: 44, withPad: " ", startingAt: 0) + value)
        }
        row("people", "\(people)")
        for status in EntryStatus.allCases.map(\.rawValue) {
            if let count = entries[status] { row("entries \(status)", "\(count)") }
        }
        for (reason, count) in invalidReasons.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            row("  \(reason)", "\(count)")
        }
        row("mistakes made and deleted", "\(mistakesDeleted)")
        row("source rows accounted for", "\(rowsAccounted) of \(rowsTotal)")
        for (name, count) in fieldwork.rows + defects.rows { row(name, "\(count)") }
        row("mutations answered", "\(mutations)")
        row("events", "\(events), \(Int(eventsPerSecond)) a second")
        if let released = releasedAfter {
            let times = [released.p50Milliseconds, released.p95Milliseconds, released.p99Milliseconds]
            let text = times.map { String(format: "%.0f ms", $0) }.joined(separator: " / ")
            row("device → released, p50 / p95 / p99", "\(text) (\(released.count) measured)")
        }
        for step in steps { row(step.name, String(format: "%.1f s", step.seconds)) }
        return (lines + [""] + verdictLines).joined(separator: "\n")
    }

    private var verdictLines: [String] {
        guard differenceCount > 0 else {
            return [
                "verdict: no differences (every device's copy = its realm = what people wrote = the back end's record)"
            ]
        }
        let hidden = differenceCount - differences.count
        return ["verdict: \(differenceCount) differences"] + differences.map { "  \($0)" }
            + (hidden > 0 ? ["  … and \(hidden) more"] : [])
    }
}

extension DemoReport {
    mutating func take(_ verdict: Verdict, _ organisation: Organisation) {
        entries = Dictionary(uniqueKeysWithValues: verdict.statuses.map { ($0.key.rawValue, $0.value) })
        invalidReasons = verdict.reasons
        mistakesDeleted = verdict.goneCount
        let rows = Dictionary(grouping: organisation.entries, by: \.sourceRow)
        rowsAccounted = rows.values.count { $0.allSatisfy { verdict.rightEntries.contains($0.id) } }
        fieldwork = verdict.fieldwork
        defects = verdict.defects
        differenceCount = verdict.differences.count
        differences = verdict.differences.prefix(Self.differencesShownMax).map(\.description)
    }
}

extension Organisation {
    /// The first people, with what is theirs.
    func limited(toPeople count: Int) -> Organisation {
        let people = Array(people.prefix(count))
        let ids = Set(people.map(\.id))
        let entries = entries.filter { ids.contains($0.person) }
        return Organisation(
            customers: customers, projects: projects, elements: elements, people: people,
            teamMembers: teamMembers.filter { ids.contains($0.person) }, entries: entries,
            rowsTotal: Set(entries.map(\.sourceRow)).count)
    }
}
