import Essentials
import Model

/// Makes an organisation of the same shape as the real time sheets, for a demo without data.
enum GeneratedOrganisation {
    static let agencies = ["Harbour", "Forest", "Rail", "Museum", "Weather", "Water", "Archive", "Health"]
    static let works = ["Website", "Survey", "Migration", "Handbook", "Registry", "Workshop"]
    static let firstNames = ["Ana", "Bo", "Cleo", "Dag", "Elin", "Finn", "Gro", "Hans", "Ida", "Jens"]
    static let lastNames = ["Holm", "Berg", "Lund", "Dahl", "Vang", "Krogh"]
    /// A Sunday, as the real weeks begin.
    static let firstDay = Day(daysSinceEpoch: 19_729)
    static let weekCount = 6

    /// The same organisation for the same numbers: about 38 entries a person, 1 in 100 rows without hours, and 1 person
    /// in 8 who starts in the second week after having reported the first. No employment ends, so that entries of today
    /// are accepted.
    static func make(people peopleCount: Int = 40, seed: UInt64 = 1) -> Organisation {
        var random = SplitMix64(seed: seed)
        let customers = agencies.enumerated().map {
            Organisation.Customer(id: "a\($0.offset + 1)", name: $0.element + " Agency")
        }
        let projects = customers.enumerated().flatMap { index, customer in
            (0..<3).map { number in
                let work = works[(index + number) % works.count]
                return Organisation.Project(
                    id: "p\(index * 3 + number + 1)", name: "\(agencies[index]) \(work)", customer: customer.id)
            }
        }
        let elements = projects.map { project in
            Organisation.Element(
                id: "W\(project.customer)-\(project.id)", name: "W\(project.customer) \(project.name)",
                project: project.id)
        }
        let people = (0..<max(1, peopleCount)).map(person)
        var rows: [WeekRow] = []
        for person in people { addWeeks(of: person, on: elements, to: &rows, using: &random) }
        return Organisation(customers: customers, projects: projects, elements: elements, people: people, rows: rows)
    }

    private static func person(_ index: Int) -> Organisation.Person {
        let id = "emp" + String(1001 + index).dropFirst()
        let name = firstNames[index % firstNames.count] + " " + lastNames[index / firstNames.count % lastNames.count]
        let start = index % 8 == 7 ? firstDay.adding(days: 7) : firstDay.adding(days: -365)
        return Organisation.Person(
            id: id, name: name, email: "\(id)@tock.example",
            active: index % 12 == 11 ? nil : start...Day.range.upperBound,
            personWorkAgreementExternalId: id, companyCode: "1010", businessPartnerUuid: StableID.uuid("person", id))
    }

    /// Adds two or three of a person's three projects a week, 40 hours in all, in halves of an hour.
    private static func addWeeks(
        of person: Organisation.Person, on elements: [Organisation.Element], to rows: inout [WeekRow],
        using random: inout SplitMix64
    ) {
        let own = Array(elements.shuffled(using: &random).prefix(3))
        for week in 0..<weekCount {
            let start = firstDay.adding(days: week * 7)
            var rest = 80
            let count = Int.random(in: 2...3, using: &random)
            for (index, element) in own.prefix(count).enumerated() {
                let halves = index == count - 1 ? rest : Int.random(in: 1...rest - (count - index), using: &random)
                rest -= halves
                let isEmpty = Int.random(in: 0..<100, using: &random) == 0
                rows.append(
                    WeekRow(
                        id: rows.count + 1, person: person.id, period: start...start.adding(days: 6),
                        project: element.project, element: element.id,
                        hours: Hours(hundredths: isEmpty ? 0 : halves * 50)))
            }
        }
    }
}
