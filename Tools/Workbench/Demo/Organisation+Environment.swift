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
