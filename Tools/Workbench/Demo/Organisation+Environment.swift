import Essentials
import FoundationEssentials
import Model

extension Organisation {
    /// The organisation with data unique to the environment: in SAP a company code, customers, projects and accounting
    /// codes; also entries and e-mail addresses.
    ///
    /// Two environments can therefore use the same back end. The ids depend on the environment only, so a second run
    /// finds the first run's entries.
    func placed(in environment: String) -> Organisation {
        let company = Self.companyCode(of: environment)
        func own(_ id: String) -> String { "\(company)-\(id)" }
        return Organisation(
            customers: customers.map { Customer(id: own($0.id), name: $0.name) },
            projects: projects.map { Project(id: own($0.id), name: $0.name, customer: own($0.customer)) },
            elements: elements.map { Element(id: own($0.id), name: $0.name, project: own($0.project)) },
            people: people.map { person in
                Person(
                    id: person.id, name: person.name, email: "\(person.id)@\(environment).example",
                    active: person.active, personWorkAgreementExternalId: own(person.personWorkAgreementExternalId),
                    companyCode: company, businessPartnerUuid: StableID.uuid(environment, "person", person.id))
            },
            teamMembers: teamMembers.map { TeamMember(project: own($0.project), person: $0.person) },
            entries: entries.map { entry in
                PlannedEntry(
                    id: StableID.uuid(environment, entry.id.text), person: entry.person, day: entry.day,
                    durationSeconds: entry.durationSeconds, project: own(entry.project),
                    accountingCode: own(entry.accountingCode), text: entry.text, sourceRow: entry.sourceRow,
                    expectation: entry.expectation)
            },
            rowsTotal: rowsTotal)
    }

    /// Four characters (SAP's `CompanyCode`), made from the environment's name: 1.7 million are possible.
    private static func companyCode(of environment: String) -> String {
        let characters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        let bytes = StableID.uuid("company", environment).uuid
        let numbers = [(bytes.0, bytes.1), (bytes.2, bytes.3), (bytes.4, bytes.5), (bytes.10, bytes.11)]
        return String(numbers.map { characters[(Int($0) << 8 | Int($1)) % characters.count] })
    }
}
