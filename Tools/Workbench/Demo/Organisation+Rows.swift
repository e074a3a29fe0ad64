import Essentials
import FoundationEssentials
import Model

extension Organisation {
    /// Plans the entries of weekly rows, and adds each person to the teams of their projects.
    init(
        customers: [Customer], projects: [Project], elements: [Element], people: [Person], rows: [WeekRow]
    ) {
        let titles = Dictionary(projects.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first })
        let peopleByID = Dictionary(people.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let weeks = Dictionary(grouping: rows) { Week(person: $0.person, period: $0.period) }
        let order = weeks.keys.sorted { ($0.person, $0.period.lowerBound) < ($1.person, $1.period.lowerBound) }
        let parts = order.flatMap { week in
            WeekSpread.spread((weeks[week] ?? []).sorted { $0.id < $1.id }, over: week.period)
        }
        self.init(
            customers: customers, projects: projects, elements: elements, people: people,
            teamMembers: Set(rows.map { TeamMember(project: $0.project, person: $0.person) })
                .sorted { ($0.project, $0.person) < ($1.project, $1.person) },
            entries: parts.map { part in
                PlannedEntry(part, of: peopleByID[part.row.person], projectTitle: titles[part.row.project] ?? "")
            },
            rowsTotal: rows.count)
    }

    private struct Week: Hashable {
        let person: String
        let period: ClosedRange<Day>
    }
}

extension PlannedEntry {
    fileprivate init(_ part: WeekSpread.Part, of person: Organisation.Person?, projectTitle: String) {
        let isActive = person?.isActive(on: part.day) ?? true
        let expectation: Expectation =
            part.durationSeconds == 0
            ? .invalid(.noDuration) : isActive ? .released : .invalid(.notActive)
        self.init(
            id: StableID.uuid("entry", "\(part.row.id)", part.day.description), person: part.row.person, day: part.day,
            durationSeconds: part.durationSeconds, project: part.row.project, accountingCode: part.row.element,
            text: String(projectTitle.prefix(TimeEntry.submittedTextLengthMax)), sourceRow: part.row.id,
            expectation: expectation)
    }
}
