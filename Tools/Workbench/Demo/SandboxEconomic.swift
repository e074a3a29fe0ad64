import Essentials
import FoundationEssentials
import HTTPClient
import Model

/// The control side of the e-conomic emulator. All ids are numbers: an accounting code is an activity of one project.
/// No employee is ever inactive.
struct SandboxEconomic: DemoBackend {
    static let kind = "economic"
    static let name = "e-conomic"
    /// The tokens identify the caller.
    static let user = ""
    static let passwordVariable = "SANDBOX_ECONOMIC_TOKENS"

    let client: Client
    let url: String

    func placed(_ organisation: Organisation, in environment: String) -> Organisation {
        let bytes = StableID.uuid("agreement", environment).uuid
        // Room for 10,000 of each sort.
        let first = (Int(bytes.0) << 8 | Int(bytes.1)) * 30_000 + 1
        func numbers(_ ids: [String], from first: Int) -> [String: String] {
            Dictionary(uniqueKeysWithValues: zip(ids, first...).map { ($0, "\($1)") })
        }
        var placed = organisation.placed(in: environment)
        let projects = numbers(placed.projects.map(\.id), from: first)
        let activities = numbers(placed.elements.map(\.id), from: first + 10_000)
        let employees = numbers(placed.people.map(\.id), from: first + 20_000)
        (placed.customers, placed.teamMembers) = ([], [])
        placed.projects = placed.projects.map { .init(id: projects[$0.id] ?? "", name: $0.name, customer: "") }
        placed.elements = placed.elements.map {
            .init(id: activities[$0.id] ?? "", name: $0.name, project: projects[$0.project] ?? "")
        }
        for index in placed.people.indices {
            placed.people[index].active = nil
            placed.people[index].companyCode = ""
            placed.people[index].personWorkAgreementExternalId = employees[placed.people[index].id] ?? ""
        }
        for index in placed.entries.indices {
            let entry = placed.entries[index]
            placed.entries[index].project = projects[entry.project] ?? ""
            placed.entries[index].accountingCode = activities[entry.accountingCode] ?? ""
            if entry.expectation == .invalid(.notActive) { placed.entries[index].expectation = .released }
        }
        return placed
    }

    func reference(of person: Organisation.Person) -> [String: String] {
        ["employeeNumber": person.personWorkAgreementExternalId]
    }

    /// The body of `POST /sandbox/organisation`.
    private struct MasterData: Encodable {
        struct Item: Encodable {
            let number: Int
            let name: String
            var isAccessible: Bool?
        }
        struct ProjectActivity: Encodable { let number, projectNumber, activityNumber: Int }

        let employees: [Item]
        let projects: [Item]
        let activities: [Item]
        let projectActivities: [ProjectActivity]
    }

    func load(_ organisation: Organisation) async throws {
        func number(_ id: String) -> Int { Int(id) ?? 0 }
        let data = MasterData(
            employees: organisation.people.map {
                .init(number: number($0.personWorkAgreementExternalId), name: $0.name)
            },
            projects: organisation.projects.map { .init(number: number($0.id), name: $0.name) },
            activities: organisation.elements.map {
                .init(number: number($0.id), name: $0.name, isAccessible: true)
            },
            projectActivities: organisation.elements.map {
                .init(number: number($0.id), projectNumber: number($0.project), activityNumber: number($0.id))
            })
        try await post("/sandbox/organisation", data)
    }

    private struct Line: Decodable {
        let number, employeeNumber, activityNumber: Int
        let date: Day
        let numberOfHours: Double
        let text: String
        let isDeleted: Bool
    }

    func recorded() async throws -> [BackendRecord] {
        let records: [Line] = try await lines(of: "/sandbox/recorded")
        return records.map { line in
            BackendRecord(
                record: "\(line.number)", person: "\(line.employeeNumber)", companyCode: "", date: line.date,
                hours: Hours(hundredths: Int((line.numberOfHours * 100).rounded())).description, note: line.text,
                wbsElement: "\(line.activityNumber)", status: line.isDeleted ? "60" : "20")
        }
    }
}
