import Essentials
import HTTPClient

/// The control side of the SAP emulator.
struct SandboxSAP: DemoBackend {
    static let kind = "sap"
    static let name = "SAP"
    static let user = "FIELDPOST"
    static let passwordVariable = "SANDBOX_SAP_PASSWORD"

    let client: Client
    let url: String

    func placed(_ organisation: Organisation, in environment: String) -> Organisation {
        organisation.placed(in: environment)
    }

    func reference(of person: Organisation.Person) -> [String: String] {
        [
            "personWorkAgreementExternalId": person.personWorkAgreementExternalId, "companyCode": person.companyCode,
            "businessPartnerUuid": person.businessPartnerUuid.text,
        ]
    }

    func load(_ organisation: Organisation) async throws {
        try await post("/sandbox/organisation", SandboxOrganisation(organisation))
    }

    func recorded() async throws -> [BackendRecord] { try await lines(of: "/sandbox/recorded") }
}

/// The body of `POST /sandbox/organisation`.
private struct SandboxOrganisation: Encodable {
    struct Person: Encodable {
        let personWorkAgreementExternalId, companyCode, businessPartnerUuid, name: String
        let validFrom, validTo, rehiredOn: String?
    }

    struct Customer: Encodable { let businessPartner, businessPartnerUuid, name: String }

    struct Element: Encodable { let projectElementUuid, projectElement, description: String }

    struct Project: Encodable {
        let projectUuid, project, description, customerUuid: String
        let elements: [Element]
        let teamMembers: [String]
    }

    let people: [Person]
    let customers: [Customer]
    let projects: [Project]

    init(_ organisation: Organisation) {
        people = organisation.people.map {
            Person(
                personWorkAgreementExternalId: $0.personWorkAgreementExternalId, companyCode: $0.companyCode,
                businessPartnerUuid: $0.businessPartnerUuid.text, name: $0.name,
                validFrom: $0.active?.lowerBound.description, validTo: $0.active?.upperBound.description,
                rehiredOn: $0.rehiredOn?.description)
        }
        customers = organisation.customers.map {
            Customer(businessPartner: $0.id, businessPartnerUuid: Self.id("customer", $0.id), name: $0.name)
        }
        let partners = Dictionary(
            organisation.people.map { ($0.id, $0.businessPartnerUuid.text) }, uniquingKeysWith: { first, _ in first })
        let elements = Dictionary(grouping: organisation.elements, by: \.project)
        let members = Dictionary(grouping: organisation.teamMembers, by: \.project)
        projects = organisation.projects.map { project in
            Project(
                projectUuid: Self.id("project", project.id), project: project.id, description: project.name,
                customerUuid: Self.id("customer", project.customer),
                elements: (elements[project.id] ?? []).map {
                    Element(projectElementUuid: Self.id("element", $0.id), projectElement: $0.id, description: $0.name)
                },
                teamMembers: (members[project.id] ?? []).compactMap { partners[$0.person] })
        }
    }

    private static func id(_ kind: String, _ name: String) -> String { StableID.uuid(kind, name).text }
}
