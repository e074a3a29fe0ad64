/// Master data of the SAP sandbox. `POST /sandbox/organisation` adds it to what is there.
struct SAPOrganisation: Codable, Sendable {
    struct Person: Codable, Sendable {
        var personWorkAgreementExternalId: String
        var companyCode: String
        var businessPartnerUuid: String
        var name: String
        /// First and last day of the employment, `yyyy-MM-dd`; open when absent.
        var validFrom: String?
        var validTo: String?
        /// First day of a second employment, which has no end.
        var rehiredOn: String?
    }

    struct Customer: Codable, Sendable {
        var businessPartner: String
        var businessPartnerUuid: String
        var name: String
    }

    struct Element: Codable, Sendable {
        var projectElementUuid: String
        var projectElement: String
        var description: String
        var timeRecordingBlocked: Bool?
    }

    struct Project: Codable, Sendable {
        var projectUuid: String
        var project: String
        var description: String
        var customerUuid: String?
        var startDate: String?
        var endDate: String?
        var processingStatus: String?
        var timeRecordingBlocked: Bool?
        var elements: [Element]
        /// Business partners of the people on the team.
        var teamMembers: [String]
    }

    var people: [Person] = []
    var customers: [Customer] = []
    var projects: [Project] = []
    /// UUIDs of projects that are no more.
    var deletedProjects: [String]?
}

/// The master data with what is looked up in it.
struct SAPMasterData {
    typealias TeamMember = (id: String, project: String, businessPartner: String)

    struct PersonKey: Hashable {
        let agreement: String
        let company: String
    }

    let organisation: SAPOrganisation
    private(set) var people: [PersonKey: SAPOrganisation.Person] = [:]
    private(set) var membersByPartner: [String: [TeamMember]] = [:]
    /// Element id → the project's index and the element's in it.
    private(set) var elements: [String: (project: Int, element: Int)] = [:]
    private(set) var projectsByID: [String: Int] = [:]

    init(_ organisation: SAPOrganisation) {
        self.organisation = organisation
        for person in organisation.people {
            people[PersonKey(agreement: person.personWorkAgreementExternalId, company: person.companyCode)] = person
        }
        for (index, project) in organisation.projects.enumerated() {
            projectsByID[project.projectUuid.lowercased()] = index
            for (position, element) in project.elements.enumerated() {
                elements[element.projectElement] = (index, position)
            }
            for (position, partner) in project.teamMembers.enumerated() {
                let id = SAPMasterData.memberID(project.projectUuid, position)
                membersByPartner[partner.lowercased(), default: []].append((id, project.projectUuid, partner))
            }
        }
    }

    /// Adds master data; items with an existing number replace it.
    func adding(_ more: SAPOrganisation) -> SAPMasterData {
        SAPMasterData(
            SAPOrganisation(
                people: Self.merged(organisation.people, more.people) {
                    PersonKey(agreement: $0.personWorkAgreementExternalId, company: $0.companyCode)
                },
                customers: Self.merged(organisation.customers, more.customers, by: \.businessPartnerUuid),
                projects: Self.merged(organisation.projects, more.projects, by: \.projectUuid)
                    .filter { more.deletedProjects?.contains($0.projectUuid) != true }))
    }

    private static func merged<Value, ID: Hashable>(
        _ old: [Value], _ new: [Value], by id: (Value) -> ID
    ) -> [Value] {
        let replaced = Set(new.map(id))
        return old.filter { !replaced.contains(id($0)) } + new
    }

    /// A GUID that a membership keeps as long as the project's list does not change.
    private static func memberID(_ project: String, _ position: Int) -> String {
        let tail = String(position, radix: 16)
        return project.dropLast(tail.count) + tail
    }
}
