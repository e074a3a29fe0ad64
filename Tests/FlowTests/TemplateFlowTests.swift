import BackendProtocol
import Backends
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Testing

extension FlowTests {
    /// An environment's templates, from a device to the back end and back.
    struct TemplateFlowTests {
        @Test(.timeLimit(.minutes(20))) func templatesRoundTripThroughTheBackEnd() async throws {
            var options = LocalCluster.Options.quick
            options.services = LocalCluster.Part.entryServices + [.poller]
            options.emulators.append(.economic)
            try await withCluster("templates", options) { cluster in
                for backend in ScenarioBackend.allCases { try await backend.load(into: cluster) }
                for backend in ScenarioBackend.allCases {
                    let flow = try await TemplateFlow(backend, cluster)
                    defer { flow.scenario.client.shutDown() }
                    try await flow.declare(backend.templates)
                    try await flow.scenario.invite()
                    try await flow.scenario.waitUntilInitialized()
                    try await flow.expectTemplates(backend.uses.map(\.template))
                    for use in backend.uses { try await flow.submit(use) }
                    for use in backend.uses { try await flow.recordElsewhere(use) }
                    // A template is removed: its entries are kept.
                    try await flow.declare(backend.templates.replacing(backend.sickness, with: ""))
                    try await flow.expectTemplates(backend.uses.map(\.template).filter { $0 != "Sickness" })
                    try await flow.expectEntries(of: "Sickness", count: 2)
                }
            }
        }
    }
}

/// The recorded values of a template: context → reference.
private struct TemplateUse: Sendable {
    let template: String
    /// A person's choices, without preselected and fixed values.
    let choices: [String: String]
    /// The back end's records.
    let record: [String: String]
}

extension ScenarioBackend {
    fileprivate var sickness: String {
        switch self {
        case .sap:
            """
            ,{"key": "sickness", "name": "Sickness", "type": "absence", "contexts": [
              {"name": "Absence", "list": "absences", "field": "TimeSheetTaskType", "preselected": ["0200"],
               "readOnly": true}]}
            """
        case .economic:
            """
            ,{"key": "sickness", "name": "Sickness", "type": "absence", "contexts": [
              {"name": "Project", "list": "projects", "field": "projectNumber", "preselected": ["13"],
               "visible": false},
              {"name": "Activity", "list": "activities", "field": "activityNumber", "preselected": ["1"],
               "visible": false}]}
            """
        }
    }

    fileprivate var templates: String {
        switch self {
        case .sap:
            """
            {"lists": [
              {"name": "absences", "nodes": [
                {"referenceId": "0100", "title": "Leave"}, {"referenceId": "0200", "title": "Sickness"}]},
              {"name": "orders", "nodes": [{"referenceId": "100001", "title": "Workshop"}]},
              {"name": "costCentres", "nodes": [{"referenceId": "1010", "title": "Yard"}]}],
             "templates": [
              {"key": "project", "name": "Projects", "type": "project", "contexts": [
                {"name": "Customer", "list": "customers"}, {"name": "Project", "list": "projects"},
                {"name": "Accounting code", "list": "wbsElements", "field": "WBSElement"},
                {"name": "Cost centre", "list": "costCentres", "field": "ReceiverCostCenter",
                 "required": false}]},
              {"key": "internal", "name": "Orders", "type": "project", "contexts": [
                {"name": "Order", "list": "orders", "field": "InternalOrder"}]},
              {"key": "leave", "name": "Leave", "type": "absence", "contexts": [
                {"name": "Absence", "list": "absences", "field": "TimeSheetTaskType", "preselected": ["0100"],
                 "visible": false}]}
              \(sickness)]}
            """
        case .economic:
            """
            {"templates": [
              {"key": "project", "name": "Projects", "type": "project", "contexts": [
                {"name": "Project", "list": "projects", "field": "projectNumber"},
                {"name": "Activity", "list": "activities", "field": "activityNumber"}]},
              {"key": "leave", "name": "Leave", "type": "absence", "contexts": [
                {"name": "Project", "list": "projects", "field": "projectNumber", "preselected": ["12"],
                 "visible": false},
                {"name": "Activity", "list": "activities", "field": "activityNumber", "preselected": ["1"],
                 "visible": false}]}
              \(sickness)]}
            """
        }
    }

    fileprivate var uses: [TemplateUse] {
        switch self {
        case .sap:
            [
                TemplateUse(
                    template: "Projects",
                    choices: [
                        "Customer": "1", "Project": "P1", "Accounting code": "P1.1", "Cost centre": "1010",
                    ], record: ["Accounting code": "P1.1", "Cost centre": "1010"]),
                TemplateUse(template: "Orders", choices: ["Order": "100001"], record: ["Order": "100001"]),
                TemplateUse(template: "Leave", choices: [:], record: ["Absence": "0100"]),
                TemplateUse(template: "Sickness", choices: [:], record: ["Absence": "0200"]),
            ]
        case .economic:
            [
                TemplateUse(
                    template: "Projects", choices: ["Project": "11", "Activity": "1"],
                    record: ["Project": "11", "Activity": "1"]),
                TemplateUse(template: "Leave", choices: [:], record: ["Project": "12", "Activity": "1"]),
                TemplateUse(template: "Sickness", choices: [:], record: ["Project": "13", "Activity": "1"]),
            ]
        }
    }
}

/// One person of an environment with templates of its own.
private struct TemplateFlow {
    let scenario: Scenario
    let cluster: LocalCluster

    init(_ backend: ScenarioBackend, _ cluster: LocalCluster) async throws {
        self.cluster = cluster
        scenario = try await SharedCluster.$cluster.withValue(cluster) { try await Scenario(backend, "realm") }
    }

    func declare(_ json: String) async throws {
        let file = "\(cluster.folder.path)/\(scenario.backend.rawValue)-templates.json"
        try Data(json.utf8).write(to: URL(filePath: file))
        try await cluster.runCommand(["environment", "templates", scenario.backend.rawValue, "--file", file])
    }

    /// The person's templates, in the order in which they are offered.
    private func templates(_ objects: [IntegrationPhone.Object]) -> [IntegrationPhone.Object] {
        let user = objects.first { $0.kind == "User" }
        return (user?.fields["reportingTemplates"] as? [String] ?? []).compactMap { id in
            objects.first { $0.kind == "ReportingTemplate" && $0.id == id }
        }
    }

    func expectTemplates(_ names: [String]) async throws {
        try await eventually("\(names) are offered") {
            let objects = try await scenario.phone.read()
            let found = templates(objects).map { $0.fields["name"] as? String ?? "" }
            return found == names ? nil : "\(found)"
        }
    }

    /// A phone registers something, and the back end holds it.
    func submit(_ use: TemplateUse) async throws {
        let objects = try await scenario.phone.read()
        let offered = templates(objects)
        let template = try #require(
            offered.first { $0.fields["name"] as? String == use.template },
            "\(use.template) is not among \(offered.map { $0.fields["name"] as? String ?? "" })")
        let contexts = template.fields["reportingContexts"] as? [String] ?? []
        let reporting = try use.choices.sorted { $0.key < $1.key }.map { name, reference in
            let context = try #require(
                objects.first { contexts.contains($0.id) && $0.fields["name"] as? String == name })
            let root = try #require(
                (context.fields["sections"] as? [[String: Any]])?.compactMap { $0["rootNode"] as? String }.first)
            let node = try #require(
                objects.first {
                    $0.fields["referenceId"] as? String == reference && $0.fields["parent"] as? String == root
                }, "\(name) \(reference)")
            return #"{"context":"\#(context.id)","node":"\#(node.id)"}"#
        }
        let id = UUID()
        try await scenario.phone.write(
            "put", id.text,
            """
            {"reportingTemplate":"\(template.id)","entryDate":"\(scenario.today.adding(days: -1))","text":"phone",
             "reporting":[\(reporting.joined(separator: ","))],"durationSeconds":3600,"submitRequested":true}
            """)
        try await scenario.expect(id, .released)
        let record = try await scenario.record(of: id)
        let found = try #require(try await adapter().readBack(record.id, of: scenario.person))
        #expect(found.references == use.record)
    }

    /// A record added in the back end arrives with its template and choices.
    func recordElsewhere(_ use: TemplateUse) async throws {
        let text = "elsewhere, \(use.template)"
        let record = try await adapter().create(
            Submission(
                marker: "", person: scenario.person, day: scenario.today.adding(days: -2), durationSeconds: 1_800,
                text: text, references: use.record))
        try await eventually("record \(record) has arrived") {
            let objects = try await scenario.phone.read()
            guard
                let entry = objects.first(where: {
                    $0.kind == "TimeEntry" && $0.fields["backendId"] as? String == record
                })
            else { return "not yet" }
            #expect(Self.template(of: entry, in: objects) == use.template)
            let nodes = (entry.fields["reporting"] as? [[String: String]] ?? []).compactMap { $0["node"] }
            let references = objects.filter { nodes.contains($0.id) }.compactMap { $0.fields["referenceId"] as? String }
            #expect(Set(use.choices.isEmpty ? Array(use.record.values) : Array(use.choices.values)) == Set(references))
            return nil
        }
    }

    func expectEntries(of template: String, count: Int) async throws {
        let objects = try await scenario.phone.read()
        let gone = objects.filter { $0.kind == "TimeEntry" && Self.template(of: $0, in: objects) == nil }
        #expect(gone.count == count, "\(gone.map(\.fields))")
        for entry in gone {
            #expect(entry.fields["status"] as? String == "released")
            for selection in entry.fields["reporting"] as? [[String: String]] ?? [] {
                #expect(objects.contains { $0.id == selection["node"] })
            }
        }
    }

    private static func template(
        of entry: IntegrationPhone.Object, in objects: [IntegrationPhone.Object]
    ) -> String? {
        objects.first { $0.id == entry.fields["reportingTemplate"] as? String }?.fields["name"] as? String
    }

    private func adapter() throws -> any TimeBackend {
        let templates = try JSONDecoder().decode(
            TemplateDeclarations.self, from: Data(scenario.backend.templates.utf8))
        let today = scenario.today
        switch scenario.backend {
        case .sap:
            let settings = SAPSettings(baseURL: cluster.sapURL, user: "FIELDPOST", password: LocalCluster.passwordOfSAP)
            return SAPBackend(settings, templates: templates, client: scenario.client, today: { today })
        case .economic:
            let settings = try #require(
                EconomicSettings(baseURL: cluster.economicURL, password: LocalCluster.tokensOfEconomic))
            return EconomicBackend(settings, templates: templates, client: scenario.client, today: { today })
        }
    }
}
