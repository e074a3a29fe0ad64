import FoundationEssentials
import HTTP
import Model

/// The SAP sandbox's own side: its master data, its faults, and what it really recorded.
struct SandboxSAP: Sendable {
    let client: Client
    /// Without a slash at the end.
    let url: String

    /// The faults of `--chaos`.
    static let chaos =
        #"{"rate503":0.05,"rate429":0.02,"rateLostAfterWrite":0.02,"rateLateCommit":0.01,"latencyMs":20}"#
    /// No faults, whatever an earlier run left switched on.
    static let calm =
        #"{"rate503":0,"rate429":0,"rateLostAfterWrite":0,"rateLateCommit":0,"latencyMs":0}"#

    private static let recordsBytesMax = 256 * 1024 * 1024

    func load(_ organisation: Organisation) async throws {
        let body = try JSONEncoder().encode(SandboxOrganisation(organisation))
        _ = try await send("POST", "/sandbox/organisation", Array(body))
    }

    /// - Returns: How many milliseconds a late commit may take.
    func setSwitches(_ switches: String) async throws -> Int {
        struct Switches: Decodable {
            let lateCommitMs: Int
        }
        let answer = try await send("POST", "/sandbox/switches", Array(switches.utf8))
        return try JSONDecoder().decode(Switches.self, from: Data(answer)).lateCommitMs
    }

    /// Every record, cancelled ones too.
    func recorded() async throws -> [BackendRecord] {
        let lines = try await send("GET", "/sandbox/recorded", nil).split(separator: UInt8(ascii: "\n"))
        let decoder = JSONDecoder()
        return try lines.map { try decoder.decode(BackendRecord.self, from: Data($0)) }
    }

    private func send(_ method: String, _ path: String, _ body: [UInt8]?) async throws -> [UInt8] {
        let response = try await client.send(
            Request(
                method, url + path, headers: body == nil ? [] : [("Content-Type", "application/json")], body: body,
                totalMax: .seconds(120), answerBytesMax: Self.recordsBytesMax))
        guard response.status == 200 else {
            let text = String(decoding: response.body.prefix(300), as: UTF8.self)
            throw DemoProblem("the SAP sandbox answers \(response.status) to \(method) \(path): \(text)")
        }
        return response.body
    }
}

/// A record as `GET /sandbox/recorded` tells it.
struct BackendRecord: Decodable, Equatable, Sendable {
    var record: String
    /// `PersonWorkAgreementExternalID`
    var person: String
    var companyCode: String
    var date: Day
    /// Two decimals.
    var hours: String
    var note: String
    var wbsElement: String
    /// CATS: 10 in process, 20 released, 30 approved, 40 rejected, 50 changed after approval, 60 cancelled.
    var status: String

    /// Neither cancelled nor replaced by a successor.
    var isLive: Bool { status != "60" && status != "50" }
}

/// The body of `POST /sandbox/organisation`.
private struct SandboxOrganisation: Encodable {
    struct Person: Encodable {
        let personWorkAgreementExternalId: String
        let companyCode: String
        let businessPartnerUuid: String
        let name: String
        let validFrom: String?
        let validTo: String?
    }

    struct Customer: Encodable {
        let businessPartner: String
        let businessPartnerUuid: String
        let name: String
    }

    struct Element: Encodable {
        let projectElementUuid: String
        let projectElement: String
        let description: String
    }

    struct Project: Encodable {
        let projectUuid: String
        let project: String
        let description: String
        let customerUuid: String
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
                validFrom: $0.active?.lowerBound.description, validTo: $0.active?.upperBound.description)
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
