import Foundation
import Model
import Testing

@testable import Backends

/// What environments declare for their people, in both directions.
@Suite struct TemplateTests {
    static let lists = """
        "lists": [
          {"name": "absences", "nodes": [
            {"referenceId": "0100", "title": "Paid leave"},
            {"referenceId": "0200", "title": "Illness", "children": [
              {"referenceId": "0210", "title": "Illness of a child"}]}]},
          {"name": "orders", "nodes": [{"referenceId": "100001", "title": "Workshop"}, {"referenceId": "100002"}]},
          {"name": "costCentres", "nodes": [{"referenceId": "0010101101", "title": "Yard"}]},
          {"name": "overtime", "nodes": [{"referenceId": "OT1", "title": "Evening"}]}]
        """
    static let sap = """
        {\(lists), "templates": [
          {"key": "project", "name": "Customers' projects", "type": "project", "contexts": [
            {"name": "Customer", "list": "customers"}, {"name": "Project", "list": "projects"},
            {"name": "Accounting code", "list": "wbsElements", "field": "WBSElement"},
            {"name": "Overtime", "list": "overtime", "field": "TimeSheetOvertimeCategory", "required": false},
            {"name": "Cost centre", "list": "costCentres", "field": "ReceiverCostCenter", "required": false}]},
          {"key": "internal", "name": "Internal orders", "type": "project", "contexts": [
            {"name": "Order", "list": "orders", "field": "InternalOrder"},
            {"name": "Cost centre", "list": "costCentres", "field": "ReceiverCostCenter",
             "preselected": ["0010101101"], "readOnly": true}]},
          {"key": "leave", "name": "Leave", "type": "absence", "contexts": [
            {"name": "Absence", "list": "absences", "field": "TimeSheetTaskType", "preselected": ["0100"],
             "visible": false}]},
          {"key": "sickness", "name": "Sickness", "type": "absence", "contexts": [
            {"name": "Absence", "list": "absences", "field": "TimeSheetTaskType", "preselected": ["0200"]}]}]}
        """

    static func declarations(_ json: String) throws -> TemplateDeclarations {
        try JSONDecoder().decode(TemplateDeclarations.self, from: Data(json.utf8))
    }

    /// An adapter whose environment has the templates above.
    private func backend(_ sap: SandboxFixture, _ json: String = sap) throws -> SAPBackend {
        SAPBackend(
            sap.settings, templates: try Self.declarations(json), client: sap.client,
            today: { SandboxFixture.today })
    }

    private func submission(_ references: [String: String], _ entry: UUID = UUID()) -> Submission {
        Submission(
            marker: EntryMarker.marker(of: entry), person: SandboxFixture.ana, day: SandboxFixture.day("2015-03-30"),
            durationSeconds: 3_600, text: nil, references: references)
    }

    @Test func theBuiltInTemplatesAreInOrder() {
        for kind in BackendConnection.kinds {
            let vocabulary = BackendVocabulary.of(kind)
            #expect(vocabulary?.builtIn.problems(for: SAPReporting.vocabulary).isEmpty == (kind == "sap"))
            #expect(vocabulary.map { $0.builtIn.problems(for: $0) } == [])
        }
    }

    @Test func aPersonGetsTheirTemplatesWithChoices() async throws {
        try await SandboxFixture.run { sap in
            let data = try await backend(sap).reportingData(of: SandboxFixture.ana)
            let names = data.templates.map(\.fields.name)
            #expect(names == ["Customers' projects", "Internal orders", "Leave", "Sickness"])
            #expect(data.templates.map(\.fields.type) == ["project", "project", "absence", "absence"])
            let contexts = Dictionary(uniqueKeysWithValues: data.contexts.map { ($0.id, $0.fields) })
            #expect(contexts.count == 9)
            let nodes = Dictionary(uniqueKeysWithValues: data.nodes.map { ($0.id, $0.fields) })
            let leave = try #require(contexts[data.templates[2].fields.reportingContexts[0]])
            #expect(!leave.visible && leave.preselected.map { nodes[$0]?.title } == ["Paid leave"])
            let child = try #require(nodes.values.first { $0.referenceId == "0210" })
            #expect(child.parent.flatMap { nodes[$0]?.title } == "Illness")
            var objects = ReportingObjects(contexts: contexts, nodes: nodes)
            for template in data.templates { objects.templates[template.id] = template.fields }
            #expect(objects.danglingReferences == [])
            // Whoever had the built-in template keeps it, and its choices.
            let builtIn = try await sap.backend.reportingData(of: SandboxFixture.ana)
            #expect(data.templates[0].id == builtIn.templates[0].id)
            #expect(Array(data.contexts.map(\.id).prefix(3)) == builtIn.contexts.map(\.id))
            #expect(Set(builtIn.nodes.map(\.id)).isSubset(of: nodes.keys))
        }
    }

    @Test(arguments: [
        (["Accounting code": "P1.1"], "Customers' projects", ["Customer", "Project", "Accounting code"]),
        (
            ["Accounting code": "P1.1", "Cost centre": "0010101101", "Overtime": "OT1"], "Customers' projects",
            ["Customer", "Project", "Accounting code", "Overtime", "Cost centre"]
        ),
        (["Order": "100002", "Cost centre": "0010101101"], "Internal orders", ["Order", "Cost centre"]),
        (["Absence": "0100"], "Leave", ["Absence"]),
        (["Absence": "0210"], "Sickness", ["Absence"]),
    ]) func whatIsRecordedIsReadAgainAsWhatItWas(
        references: [String: String], template: String, contexts: [String]
    ) async throws {
        try await SandboxFixture.run { sap in
            let backend = try backend(sap)
            let id = try await backend.create(submission(references))
            let record = try #require(try await backend.readBack(id, of: SandboxFixture.ana))
            #expect(record.references == references)
            let data = try await backend.reportingData(of: SandboxFixture.ana)
            let entry = try #require(TimeEntry(record, in: ReportingData.Lookup(data)))
            #expect(data.templates.first { $0.id == entry.reportingTemplate }?.fields.name == template)
            let names = Dictionary(uniqueKeysWithValues: data.contexts.map { ($0.id, $0.fields.name) })
            #expect(entry.reporting.compactMap { names[$0.context] } == contexts)
        }
    }

    @Test func anEntryOfAnotherTemplateIsAssignedToNothingOfTheFirst() async throws {
        try await SandboxFixture.run { sap in
            let (backend, entry) = (try backend(sap), UUID())
            let id = try await backend.create(
                submission(["Accounting code": "P1.1", "Cost centre": "0010101101"], entry))
            #expect(try await backend.update(id, to: submission(["Absence": "0100"], entry)) == id)
            #expect(try await backend.readBack(id, of: SandboxFixture.ana)?.references == ["Absence": "0100"])
        }
    }

    @Test func aNumberIsTheSameWithZerosBeforeIt() async throws {
        try await SandboxFixture.run { sap in
            let other = try backend(
                sap, Self.sap.replacingOccurrences(of: "0010101101", with: "10101101"))
            let id = try await other.create(submission(["Order": "100001", "Cost centre": "10101101"]))
            let record = try await backend(sap).readBack(id, of: SandboxFixture.ana)
            #expect(record?.references == ["Order": "100001", "Cost centre": "0010101101"])
        }
    }

    @Test func aTemplateReachesWhoCanUseIt() async throws {
        try await SandboxFixture.run { sap in
            let json = """
                {"templates": [{"key": "overhead", "name": "Overhead", "type": "project", "contexts": [
                  {"name": "Customer", "list": "customers", "required": false, "visible": false},
                  {"name": "Project", "list": "projects", "preselected": ["P2"], "readOnly": true},
                  {"name": "Accounting code", "list": "wbsElements", "field": "WBSElement"}]}]}
                """
            let backend = try backend(sap, json)
            #expect(try await backend.reportingData(of: SandboxFixture.ana).templates.count == 1)
            // Bo is not on that project's team.
            #expect(try await backend.reportingData(of: SandboxFixture.bo).templates.isEmpty)
        }
    }

    @Test func whatNobodyMappedIsNoReference() async throws {
        try await SandboxFixture.run { sap in
            let id = try await backend(sap).create(submission(["Accounting code": "P1.1", "Overtime": "OT1"]))
            let record = try await sap.backend.readBack(id, of: SandboxFixture.ana)
            #expect(record?.references == ["Accounting code": "P1.1"])
            await #expect(throws: BackendError.refused(["None of Accounting code is chosen"])) {
                try await sap.backend.create(submission(["Order": "100001"]))
            }
        }
    }

    static let economic = """
        {"templates": [
          {"key": "project", "name": "Projects", "type": "project", "contexts": [
            {"name": "Project", "list": "projects", "field": "projectNumber"},
            {"name": "Activity", "list": "activities", "field": "activityNumber"}]},
          {"key": "leave", "name": "Leave", "type": "absence", "contexts": [
            {"name": "Project", "list": "projects", "field": "projectNumber", "preselected": ["13"],
             "visible": false},
            {"name": "Activity", "list": "activities", "field": "activityNumber", "preselected": ["2"],
             "visible": false}]}]}
        """

    @Test(arguments: [
        (["Project": "12", "Activity": "2"], "Projects"), (["Project": "13", "Activity": "2"], "Leave"),
    ])
    func inEconomicLeaveIsAnActivityOfAProject(references: [String: String], template: String) async throws {
        try await EconomicFixture.run { economic in
            let backend = EconomicBackend(
                economic.settings, templates: try Self.declarations(Self.economic), client: economic.client,
                today: { EconomicFixture.today })
            let id = try await backend.create(
                EconomicFixture.submission(project: references["Project"], activity: references["Activity"]))
            let record = try #require(try await backend.readBack(id, of: EconomicFixture.ana))
            #expect(record.references == references)
            let data = try await backend.reportingData(of: EconomicFixture.ana)
            let meaning = data.meaning(of: record.references)
            #expect(data.templates.first { $0.id == meaning.template }?.fields.name == template)
            #expect(meaning.selections.count == 2)
        }
    }
}

/// What is refused, and how it is said.
@Suite struct TemplateDeclarationTests {
    /// One template with these contexts, and a list "l" with these nodes.
    private static func json(_ contexts: String, nodes: String? = nil, more: String = "") -> String {
        let lists = nodes.map { #"[{"name": "l", "nodes": [\#($0)]}]"# } ?? "[]"
        let template = #"{"key": "a", "name": "A", "type": "t", "contexts": [\#(contexts)]}"#
        return #"{"lists": \#(lists), "templates": [\#(template)\#(more)]}"#
    }

    private static let one = #"{"referenceId": "1"}"#
    private static let item = #"{"name": "X", "list": "l", "field": "WorkItem"}"#

    @Test(arguments: [
        (#"{"templates": []}"#, "templates: there are 0, and can be 1 to 50"),
        (json(""), "template 'a': contexts: there are 0"),
        (
            #"{"templates": [{"key": "A b", "name": "", "type": "t", "contexts": []}]}"#,
            "template 'A b': a key is 1 to 32 small letters"
        ),
        (
            json(#"{"name": "X", "list": "unknown"}"#),
            "there is no list 'unknown'; there are customers, projects, wbsElements"
        ),
        (
            json(#"{"name": "X", "list": "wbsElements", "field": "WBSElement"}"#),
            "the choices of wbsElements depend on one of projects: put a context with that list before it"
        ),
        (
            json(#"{"name": "X", "list": "customers", "field": "WBSElement"}"#),
            "the choices of customers are recorded in no field, not into WBSElement"
        ),
        (json(#"{"name": "X", "list": "customers"}"#), "none of its contexts has a field"),
        (
            json(
                #"{"name": "X", "list": "l", "field": "TimeSheetTaskType"}"#, nodes: #"{"referenceId": "12345"}"#),
            "'12345' is longer than the 4 characters of TimeSheetTaskType"
        ),
        (
            json(#"{"name": "X", "list": "l", "field": "TaskType"}"#, nodes: one),
            "sap has no field 'TaskType'; there are WBSE"
        ),
        (
            json(#"{"name": "X", "list": "l", "field": "WorkItem", "preselected": ["2"]}"#, nodes: one),
            "preselected '2' is not in the list 'l'"
        ),
        (
            json(#"{"name": "X", "list": "l", "field": "WorkItem", "visible": false}"#, nodes: one),
            "nobody can choose anything here, and nothing is preselected"
        ),
        (
            json(item, nodes: #"{"referenceId": "a"}, {"referenceId": "A"}"#),
            "list 'l': the referenceId 'a' is there twice"
        ),
        (json(#"{"name": "X", "list": "l"}"#, nodes: one), "without a field nobody would know what was chosen"),
        (
            json(item + #", {"name": "Y", "list": "l", "field": "WorkItem"}"#, nodes: one),
            "WorkItem is called 'X' elsewhere; a field has one name"
        ),
        (
            json(
                item, nodes: one,
                more: #", {"key": "b", "name": "B", "type": "t", "contexts": ["#
                    + #"{"name": "X", "list": "l", "field": "InternalOrder"}]}"#),
            "its name means WorkItem in another template; give it another name"
        ),
        (
            #"{"lists": [{"name": "projects", "nodes": []}], "templates": []}"#,
            "list 'projects': sap has a list of that name"
        ),
    ]) func whatCannotWorkIsNamed(json: String, problem: String) throws {
        let problems = try TemplateTests.declarations(json).problems(for: SAPReporting.vocabulary)
        #expect(problems.contains { $0.contains(problem) }, "\(problems)")
    }

    @Test func economicNeedsAProjectAndAnActivity() throws {
        let json = Self.json(#"{"name": "P", "list": "projects", "field": "projectNumber"}"#)
        let problems = try TemplateTests.declarations(json).problems(for: EconomicReporting.vocabulary)
        #expect(problems == ["template 'a': a required context must have the field activityNumber"])
    }

    @Test(arguments: [
        #"{"templates": [], "list": []}"#, #"{"templates": [{"key": "a", "name": "A", "contexts": []}]}"#,
        json(#"{"name": "x", "list": "l", "readonly": true}"#),
    ]) func whatIsMisspeltIsNotTakenForAbsent(json: String) throws {
        #expect(throws: DecodingError.self) { try TemplateTests.declarations(json) }
    }

    @Test func theExampleIsInOrder() throws {
        let sap = try TemplateTests.declarations(TemplateTests.sap)
        #expect(sap.problems(for: SAPReporting.vocabulary) == [])
        let economic = try TemplateTests.declarations(TemplateTests.economic)
        #expect(economic.problems(for: EconomicReporting.vocabulary) == [])
        let again = try JSONDecoder().decode(TemplateDeclarations.self, from: JSONEncoder().encode(sap))
        #expect(again == sap)
    }
}
