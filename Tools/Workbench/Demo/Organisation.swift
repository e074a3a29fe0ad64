import Essentials
import FoundationEssentials
import Model

/// An employer whose people register time: the master data of the back end, and the plans of the devices.
struct Organisation: Equatable, Sendable {
    /// A customer of projects.
    struct Customer: Equatable, Sendable {
        /// The customer's number in the back end.
        let id: String
        let name: String
    }

    struct Project: Equatable, Sendable {
        /// The project's number in the back end.
        let id: String
        let name: String
        /// The ``Customer/id``.
        let customer: String
    }

    /// An accounting code within a project: a WBS element. The same code under two projects is two elements.
    struct Element: Equatable, Sendable {
        /// The element's number in the back end, unique over all projects; at most 24 characters (SAP's `WBSElement`).
        let id: String
        let name: String
        /// The ``Project/id``.
        let project: String
    }

    struct Person: Equatable, Sendable {
        let id: String
        let name: String
        var email: String
        /// The days of the employment, on which the back end accepts entries; `nil` without dates: always.
        var active: ClosedRange<Day>?
        /// The first day of a second employment, which has no end.
        var rehiredOn: Day?
        /// At most 20 characters (SAP's `PersonWorkAgreementExternalID`).
        var personWorkAgreementExternalId: String
        /// 4 characters (SAP's `CompanyCode`).
        var companyCode: String
        var businessPartnerUuid: UUID

        func isActive(on day: Day) -> Bool {
            (active?.contains(day) ?? true) || (rehiredOn.map { day >= $0 } ?? false)
        }
    }

    /// A person may report on a project.
    struct TeamMember: Hashable, Sendable {
        /// The ``Project/id``.
        let project: String
        /// The ``Person/id``.
        let person: String
    }

    var customers: [Customer]
    var projects: [Project]
    var elements: [Element]
    var people: [Person]
    var teamMembers: [TeamMember]
    /// Every entry the devices will draft; a source row's entries stand together, in the order of their days.
    var entries: [PlannedEntry]
    /// The number of source rows. Every row has at least one entry.
    var rowsTotal: Int
}

/// Time that a person will register on a day, and how that should end.
struct PlannedEntry: Equatable, Sendable {
    enum Expectation: Hashable, Sendable {
        case released
        case invalid(InvalidReason)
    }

    /// Why an entry cannot be recorded.
    enum InvalidReason: String, Hashable, CaseIterable, Sendable {
        /// ``EntryRules`` finds it: the source has a row of 0 hours.
        case noDuration = "Duration must be more than 0"
        /// The back end finds it: the day is before the person's first or after the last day.
        case notActive = "not active on"
    }

    /// The entry's id; the same for the same source and day, so that a second run meets the same entries.
    var id: UUID
    /// The ``Organisation/Person/id``.
    let person: String
    var day: Day
    let durationSeconds: Int
    /// The ``Organisation/Project/id``.
    var project: String
    /// The ``Organisation/Element/id``.
    var accountingCode: String
    /// At most ``TimeEntry/submittedTextLengthMax`` characters.
    let text: String
    /// The id of the source row.
    let sourceRow: Int
    var expectation: Expectation
}

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

    /// The first people, with their entries and team memberships.
    func limited(toPeople count: Int) -> Organisation {
        let people = Array(people.prefix(count))
        let ids = Set(people.map(\.id))
        let entries = entries.filter { ids.contains($0.person) }
        var limited = self
        (limited.people, limited.entries) = (people, entries)
        limited.teamMembers = teamMembers.filter { ids.contains($0.person) }
        limited.rowsTotal = Set(entries.map(\.sourceRow)).count
        return limited
    }

    // MARK: Environments

    /// The organisation with data unique to the environment: in SAP a company code, customers, projects and accounting
    /// codes; also entries and e-mail addresses.
    ///
    /// Two environments can therefore use the same back end. The ids depend on the environment only, so a second run
    /// finds the first run's entries.
    func placed(in environment: String) -> Organisation {
        let company = Self.companyCode(of: environment)
        func own(_ id: String) -> String { "\(company)-\(id)" }
        var organisation = self
        organisation.customers = customers.map { Customer(id: own($0.id), name: $0.name) }
        organisation.projects = projects.map { Project(id: own($0.id), name: $0.name, customer: own($0.customer)) }
        organisation.elements = elements.map { Element(id: own($0.id), name: $0.name, project: own($0.project)) }
        organisation.teamMembers = teamMembers.map { TeamMember(project: own($0.project), person: $0.person) }
        organisation.people = people.map { person in
            var person = person
            person.email = "\(person.id)@\(environment).example"
            person.personWorkAgreementExternalId = own(person.personWorkAgreementExternalId)
            person.companyCode = company
            person.businessPartnerUuid = StableID.uuid(environment, "person", person.id)
            return person
        }
        organisation.entries = entries.map { entry in
            var entry = entry
            entry.id = StableID.uuid(environment, entry.id.text)
            (entry.project, entry.accountingCode) = (own(entry.project), own(entry.accountingCode))
            return entry
        }
        return organisation
    }

    /// Four characters (SAP's `CompanyCode`), made from the environment's name: 1.7 million are possible.
    private static func companyCode(of environment: String) -> String {
        let characters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        let bytes = StableID.uuid("company", environment).uuid
        let numbers = [(bytes.0, bytes.1), (bytes.2, bytes.3), (bytes.4, bytes.5), (bytes.10, bytes.11)]
        return String(numbers.map { characters[(Int($0) << 8 | Int($1)) % characters.count] })
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

/// A row of a weekly time sheet: a person's hours for one project and one period.
struct WeekRow: Equatable, Sendable {
    let id: Int
    let person: String
    let period: ClosedRange<Day>
    let project: String
    let element: String
    let hours: Hours
}

/// Spreads rows by the week over days.
enum WeekSpread {
    /// A part of a row on one day.
    struct Part: Equatable, Sendable {
        let row: WeekRow
        let day: Day
        let durationSeconds: Int
    }

    /// A day takes this much before the next one is used.
    static let daySecondsUsual = 8 * 3600
    private static let quarterHour = 900

    /// Lays the rows of one person and period one after the other over the period's Monday to Friday (over all its days
    /// when it has none of these).
    ///
    /// A day takes 8 hours, or more when the whole would not fit: then the total divided by the number of days, rounded
    /// up to a quarter of an hour. A row's parts sum up to its hours exactly, each a whole number of hundredths of an
    /// hour. A row of 0 hours becomes one part of 0 on the day where it stands.
    static func spread(_ rows: [WeekRow], over period: ClosedRange<Day>) -> [Part] {
        let days = workingDays(of: period)
        let total = rows.reduce(0) { $0 + $1.hours.seconds }
        let share = (total + days.count - 1) / days.count
        let capacity = max(daySecondsUsual, (share + quarterHour - 1) / quarterHour * quarterHour)
        var parts: [Part] = []
        var used = 0
        for row in rows {
            var rest = row.hours.seconds
            repeat {
                let index = min(used / capacity, days.count - 1)
                let taken = min(rest, capacity - used % capacity)
                parts.append(Part(row: row, day: days[index], durationSeconds: taken))
                used += taken
                rest -= taken
            } while rest > 0
        }
        return parts
    }

    private static func workingDays(of period: ClosedRange<Day>) -> [Day] {
        let count = period.lowerBound.days(until: period.upperBound) + 1
        let days = (0..<count).map { period.lowerBound.adding(days: $0) }
        let working = days.filter { $0.weekday.rawValue <= Day.Weekday.friday.rawValue }
        return working.isEmpty ? days : working
    }
}
