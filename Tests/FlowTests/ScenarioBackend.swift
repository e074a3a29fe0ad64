import Backends
import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

/// A back end of the scenarios: an environment of its own, and what people in its office do.
enum ScenarioBackend: String, CaseIterable, CustomTestStringConvertible {
    case sap, economic

    var testDescription: String { rawValue }
    var domain: String { rawValue + ".example" }

    /// The people of all scenarios.
    static let names = [
        "realm", "crash", "draft", "read-back", "time-out", "deleted", "log", "busy", "hours", "elsewhere", "locked",
    ]

    /// Context → the node's reference, of the project with this number.
    func choice(_ project: Int) -> [(context: String, reference: String)] {
        switch self {
        case .sap: [("Customer", "1"), ("Project", "P\(project)"), ("Accounting code", "P\(project).1")]
        case .economic: [("Project", "\(10 + project)"), ("Activity", "1")]
        }
    }

    /// The back end's reference of a project.
    func project(_ number: Int) -> String { choice(number).first { $0.context == "Project" }?.reference ?? "" }

    private func number(of name: String) -> Int { (Self.names.firstIndex(of: name) ?? 0) + 1 }

    func reference(_ name: String) -> [String: String] {
        switch self {
        case .sap:
            [
                "personWorkAgreementExternalId": "P\(number(of: name))", "companyCode": "1010",
                "businessPartnerUuid": SmallOrganisation.guid(1_000 + number(of: name)),
            ]
        case .economic: ["employeeNumber": "\(number(of: name))"]
        }
    }

    // MARK: Master data

    /// The body of `POST /sandbox/organisation` with all people, and these projects.
    func organisation(projects: [Int], deleted: [Int] = []) -> String {
        let people = Self.names.map { name in
            switch self {
            case .sap:
                """
                {"personWorkAgreementExternalId": "P\(number(of: name))", "companyCode": "1010", "name": "\(name)",
                 "businessPartnerUuid": "\(SmallOrganisation.guid(1_000 + number(of: name)))"}
                """
            case .economic: #"{"number": \#(number(of: name)), "name": "\#(name)"}"#
            }
        }.joined(separator: ",")
        let list = projects.map(project(numbered:)).joined(separator: ",")
        switch self {
        case .sap:
            let gone = deleted.map { "\"\(SmallOrganisation.guid(10 + $0))\"" }.joined(separator: ",")
            return """
                {"people": [\(people)], "projects": [\(list)], "deletedProjects": [\(gone)], "customers": [
                 {"businessPartner": "1", "businessPartnerUuid": "\(SmallOrganisation.guid(1))", "name": "Customer"}]}
                """
        case .economic:
            let gone = deleted.map { "\(10 + $0)" }.joined(separator: ",")
            return """
                {"employees": [\(people)], "projects": [\(list)], "deletedProjects": [\(gone)],
                 "activities": [{"number": 1, "name": "Digging", "isAccessible": true}]}
                """
        }
    }

    private func project(numbered number: Int) -> String {
        switch self {
        case .sap:
            let partners = Self.names.map { "\"\(SmallOrganisation.guid(1_000 + self.number(of: $0)))\"" }
            return """
                {"projectUuid": "\(SmallOrganisation.guid(10 + number))", "project": "P\(number)",
                 "description": "Project \(number)", "customerUuid": "\(SmallOrganisation.guid(1))",
                 "elements": [{"projectElementUuid": "\(SmallOrganisation.guid(100 + number))",
                   "projectElement": "P\(number).1", "description": "Work \(number)"}],
                 "teamMembers": [\(partners.joined(separator: ","))]}
                """
        case .economic: return #"{"number": \#(10 + number), "name": "Project \#(number)"}"#
        }
    }

    /// Loads the master data and adds the environment.
    func load(into cluster: LocalCluster) async throws {
        _ = try await RemoteEmulator.with(url(cluster)) {
            try await $0.post("/sandbox/organisation", organisation(projects: [1, 2, 3]))
        }
        struct Invitation: Encodable {
            let email: String
            let reference: [String: String]
        }
        let people = Self.names.map { Invitation(email: "\($0)@\(domain)", reference: reference($0)) }
        let file = "\(cluster.folder.path)/\(rawValue).json"
        try JSONEncoder().encode(people).write(to: URL(filePath: file))
        let credentials =
            switch self {
            case .sap: ["--backend-user", "FIELDPOST", "--backend-password-variable", LocalCluster.passwordVariable]
            case .economic: ["--backend-password-variable", LocalCluster.tokensVariable]
            }
        try await cluster.runCommand(
            [
                "environment", "add", rawValue, "--domain", domain, "--issuer", cluster.identityURL + "/" + rawValue,
                "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", rawValue,
                "--backend-url", url(cluster), "--people", file,
            ] + credentials)
        try await cluster.runCommand(["environment", "edit", rawValue, "--poll-interval", "5"])
    }

    func url(_ cluster: LocalCluster) -> String {
        switch self {
        case .sap: cluster.sapURL
        case .economic: cluster.economicURL
        }
    }

    /// The emulator's counters.
    func stats(_ cluster: LocalCluster) async throws -> [String: Int] {
        try await RemoteEmulator.with(url(cluster)) { try await $0.stats() }
    }
}

/// A record of the emulator's control route.
struct ScenarioRecord: Equatable {
    let id: String
    let note: String
    let hours: Hours?
    let isLive: Bool
}

extension ScenarioBackend {
    private struct EconomicLine: Decodable {
        let number: Int
        let text: String
        let numberOfHours: Double
        let isDeleted: Bool
    }

    func records(_ cluster: LocalCluster) async throws -> [ScenarioRecord] {
        switch self {
        case .sap:
            return try await cluster.recorded().map {
                ScenarioRecord(id: $0.record, note: $0.note, hours: Hours($0.hours), isLive: $0.isLive)
            }
        case .economic:
            return try await RemoteEmulator.with(url(cluster)) { try await $0.recorded(as: EconomicLine.self) }.map {
                ScenarioRecord(
                    id: "\($0.number)", note: $0.text,
                    hours: Hours(hundredths: Int(($0.numberOfHours * 100).rounded())), isLive: !$0.isDeleted)
            }
        }
    }
}
