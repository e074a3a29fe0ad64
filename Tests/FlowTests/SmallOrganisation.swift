import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import TestSupport

/// A back end's master data for a few people, and what it recorded.
struct SmallOrganisation: Sendable {
    struct Person: Sendable {
        let email: String
        /// SAP's `PersonWorkAgreementExternalID`
        let agreement: String
        let partner: String
    }

    static let environment = "flow"
    let people: [Person]
    let projectCount = 3
    let elementsPerProject: Int

    init(peopleCount: Int, elementsPerProject: Int = 4) {
        self.elementsPerProject = elementsPerProject
        people = (1...peopleCount).map {
            Person(email: "person\($0)@example.com", agreement: "P\($0)", partner: Self.guid(1_000 + $0))
        }
    }

    static func guid(_ number: Int) -> String {
        let digits = String(number)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }

    /// The body of `POST /sandbox/organisation`.
    private struct MasterData: Encodable {
        struct Person: Encodable { let personWorkAgreementExternalId, companyCode, businessPartnerUuid, name: String }
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
    }

    /// The file of `fieldpost environment add --people`.
    private struct Invitation: Encodable {
        let email: String
        let reference: [String: String]
    }

    /// Loads SAP, adds the environment and, by default, invites all people.
    func load(into cluster: LocalCluster, invites: Bool = true) async throws {
        let data = MasterData(
            people: people.map {
                .init(
                    personWorkAgreementExternalId: $0.agreement, companyCode: "1010", businessPartnerUuid: $0.partner,
                    name: $0.email)
            },
            customers: [.init(businessPartner: "1", businessPartnerUuid: Self.guid(1), name: "Customer")],
            projects: (1...projectCount).map { project in
                .init(
                    projectUuid: Self.guid(10 + project), project: "P\(project)", description: "Project \(project)",
                    customerUuid: Self.guid(1),
                    elements: (1...elementsPerProject).map { element in
                        .init(
                            projectElementUuid: Self.guid(100 * project + element),
                            projectElement: "P\(project).\(element)", description: "Work \(project).\(element)")
                    },
                    teamMembers: people.map(\.partner))
            })
        try await cluster.post("/sandbox/organisation", try JSONEncoder().encode(data))
        let file = cluster.folder.path + "/people.json"
        let invitations = people.map {
            Invitation(
                email: $0.email,
                reference: [
                    "personWorkAgreementExternalId": $0.agreement, "companyCode": "1010",
                    "businessPartnerUuid": $0.partner,
                ])
        }
        try JSONEncoder().encode(invitations).write(to: URL(filePath: file))
        try await cluster.runCommand([
            "environment", "add", Self.environment, "--domain", "example.com", "--issuer", cluster.identityURL,
            "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "sap",
            "--backend-url", cluster.sapURL, "--backend-user", "FIELDPOST",
            "--backend-password-variable", LocalCluster.passwordVariable, "--people", file,
        ])
        if invites { try await cluster.runCommand(["environment", "invite", "--all"]) }
    }
}

/// A record of `GET /sandbox/recorded`.
struct Recorded: Decodable, Sendable {
    let record, person, date, hours, note, wbsElement, status: String

    /// Neither cancelled (60) nor replaced by a successor (50).
    var isLive: Bool { status != "60" && status != "50" }
}

extension LocalCluster {
    /// Sends a control request to the SAP emulator.
    func post(_ path: String, _ body: Data) async throws {
        _ = try await RemoteEmulator.with(sapURL) { try await $0.post(path, String(decoding: body, as: UTF8.self)) }
    }

    func recorded() async throws -> [Recorded] {
        try await RemoteEmulator.with(sapURL) { try await $0.recorded(as: Recorded.self) }
    }
}
