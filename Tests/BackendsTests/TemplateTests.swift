import BackendProtocol
import Catalogues
import Foundation
import Model
import TestSupport
import Testing

@testable import Backends

/// Templates of environments, in both directions.
@Suite(.ownThreads) struct TemplateTests {
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

    /// An adapter of an environment with the templates above.
    private func backend(_ sap: SAPFixture, _ json: String = sap) throws -> SAPBackend {
        SAPBackend(
            sap.settings, templates: try Self.declarations(json), client: sap.client,
            today: { SAPFixture.today })
    }

    private func submission(_ references: [String: String], _ entry: UUID = UUID()) -> Submission {
        Submission(
            marker: EntryMarker.marker(of: entry), person: SAPFixture.ana, day: SAPFixture.day("2015-03-30"),
            durationSeconds: 3_600, text: nil, references: references)
    }

    @Test func builtInTemplatesAreValid() {
        for kind in BackendKind.all {
            let (vocabulary, isSAP) = (kind.vocabulary, kind.name == "sap")
            #expect(vocabulary.builtIn.problems(for: SAPReporting.vocabulary).isEmpty == isSAP)
            #expect(vocabulary.builtIn.problems(for: vocabulary) == [])
        }
    }

    @Test func personGetsTemplatesWithChoices() async throws {
        try await SAPFixture.run { sap in
            let data = try await backend(sap).reportingData(of: SAPFixture.ana)
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
            // People with the built-in template keep it, and its choices.
            let builtIn = try await sap.backend.reportingData(of: SAPFixture.ana)
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
    ]) func recordedTemplateIsReadBackUnchanged(
        references: [String: String], template: String, contexts: [String]
    ) async throws {
        try await SAPFixture.run { sap in
            let backend = try backend(sap)
            let id = try await backend.create(submission(references))
            let record = try #require(try await backend.readBack(id, of: SAPFixture.ana))
            #expect(record.references == references)
            let data = try await backend.reportingData(of: SAPFixture.ana)
            let entry = try #require(TimeEntry(record, in: ReportingData.Lookup(data)))
            #expect(data.templates.first { $0.id == entry.reportingTemplate }?.fields.name == template)
            let names = Dictionary(uniqueKeysWithValues: data.contexts.map { ($0.id, $0.fields.name) })
            #expect(entry.reporting.compactMap { names[$0.context] } == contexts)
        }
    }

    @Test func entryOfAnotherTemplateClearsOtherAssignments() async throws {
        try await SAPFixture.run { sap in
            let (backend, entry) = (try backend(sap), UUID())
            let id = try await backend.create(
                submission(["Accounting code": "P1.1", "Cost centre": "0010101101"], entry))
            #expect(try await backend.update(id, to: submission(["Absence": "0100"], entry)) == id)
            #expect(try await backend.readBack(id, of: SAPFixture.ana)?.references == ["Absence": "0100"])
        }
    }

    @Test func leadingZerosOfNumbersAreIgnored() async throws {
        try await SAPFixture.run { sap in
            let other = try backend(
                sap, Self.sap.replacingOccurrences(of: "0010101101", with: "10101101"))
            let id = try await other.create(submission(["Order": "100001", "Cost centre": "10101101"]))
            let record = try await backend(sap).readBack(id, of: SAPFixture.ana)
            #expect(record?.references == ["Order": "100001", "Cost centre": "0010101101"])
        }
    }

    @Test func templateIsOfferedToPeopleWhoCanUseIt() async throws {
        try await SAPFixture.run { sap in
            let json = """
                {"templates": [{"key": "overhead", "name": "Overhead", "type": "project", "contexts": [
                  {"name": "Customer", "list": "customers", "required": false, "visible": false},
                  {"name": "Project", "list": "projects", "preselected": ["P2"], "readOnly": true},
                  {"name": "Accounting code", "list": "wbsElements", "field": "WBSElement"}]}]}
                """
            let backend = try backend(sap, json)
            #expect(try await backend.reportingData(of: SAPFixture.ana).templates.count == 1)
            // Bo is not in that project's team.
            #expect(try await backend.reportingData(of: SAPFixture.bo).templates.isEmpty)
        }
    }

    @Test func unmappedFieldIsNoReference() async throws {
        try await SAPFixture.run { sap in
            let id = try await backend(sap).create(submission(["Accounting code": "P1.1", "Overtime": "OT1"]))
            let record = try await sap.backend.readBack(id, of: SAPFixture.ana)
            #expect(record?.references == ["Accounting code": "P1.1"])
            await #expect(throws: BackendError.refused(["None of Accounting code is selected"])) {
                try await sap.backend.create(submission([:]))
            }
        }
    }

    @Test func undeclaredContextIsNotProcessed() async throws {
        try await SAPFixture.run { sap in
            let error = await #expect(throws: BackendError.self) {
                try await backend(sap).create(submission(["Accounting code": "P1.1", "Shift": "N"]))
            }
            #expect(error?.kind == "notProcessed")
            let stats = try await sap.stats()
            #expect(stats["creates"] == nil)
        }
    }

    /// The setting assigns the same activity type to records of templates without one.
    @Test func defaultValueIsNoChoice() async throws {
        try await SAPFixture.run { sap in
            var settings = sap.settings
            settings.activityType = "T1"
            let json = """
                {"lists": [{"name": "work", "nodes": [{"referenceId": "T1"}, {"referenceId": "T2"}]}],
                 "templates": [
                  {"key": "project", "name": "P", "type": "p", "contexts": [
                    {"name": "Customer", "list": "customers"}, {"name": "Project", "list": "projects"},
                    {"name": "Accounting code", "list": "wbsElements", "field": "WBSElement"}]},
                  {"key": "consulting", "name": "C", "type": "p", "contexts": [
                    {"name": "Customer", "list": "customers"}, {"name": "Project", "list": "projects"},
                    {"name": "Accounting code", "list": "wbsElements", "field": "WBSElement"},
                    {"name": "Work", "list": "work", "field": "ActivityType"}]}]}
                """
            let backend = SAPBackend(
                settings, templates: try Self.declarations(json), client: sap.client, today: { SAPFixture.today })
            let data = try await backend.reportingData(of: SAPFixture.ana)
            for (references, template) in [
                (["Accounting code": "P1.1"], "P"), (["Accounting code": "P1.1", "Work": "T2"], "C"),
            ] {
                let id = try await backend.create(submission(references))
                let record = try #require(try await backend.readBack(id, of: SAPFixture.ana))
                #expect(record.references == references)
                let meaning = data.meaning(of: record.references)
                #expect(data.templates.first { $0.id == meaning.template }?.fields.name == template)
            }
        }
    }

    /// A record without a value excludes templates in which that value is fixed.
    @Test(
        arguments: [
            ([:], nil), (["Order": "100001"], "Plain"), (["Order": "100001", "Overtime": "OT1"], "Evening"),
            (["Accounting code": "P2.1"], "Overhead"), (["Accounting code": "P1.1"], "Projects"),
        ] as [([String: String], String?)])
    func missingFixedChoiceExcludesTemplate(references: [String: String], template: String?) async throws {
        try await SAPFixture.run { sap in
            let json = """
                {\(Self.lists), "templates": [
                  {"key": "leave", "name": "Leave", "type": "t", "contexts": [
                    {"name": "Absence", "list": "absences", "field": "TimeSheetTaskType", "preselected": ["0100"],
                     "visible": false}]},
                  {"key": "plain", "name": "Plain", "type": "t", "contexts": [
                    {"name": "Order", "list": "orders", "field": "InternalOrder"}]},
                  {"key": "evening", "name": "Evening", "type": "t", "contexts": [
                    {"name": "Order", "list": "orders", "field": "InternalOrder"},
                    {"name": "Overtime", "list": "overtime", "field": "TimeSheetOvertimeCategory",
                     "preselected": ["OT1"], "readOnly": true}]},
                  {"key": "project", "name": "Projects", "type": "t", "contexts": [
                    {"name": "Customer", "list": "customers"}, {"name": "Project", "list": "projects"},
                    {"name": "Accounting code", "list": "wbsElements", "field": "WBSElement"}]},
                  {"key": "overhead", "name": "Overhead", "type": "t", "contexts": [
                    {"name": "Customer", "list": "customers"},
                    {"name": "Project", "list": "projects", "preselected": ["P2"], "readOnly": true},
                    {"name": "Accounting code", "list": "wbsElements", "field": "WBSElement"}]}]}
                """
            let data = try await backend(sap, json).reportingData(of: SAPFixture.ana)
            let meaning = data.meaning(of: references)
            let name = data.templates.first { $0.id == meaning.template }?.fields.name
            if let template { #expect(name == template) } else { #expect(name != "Leave" && name != "Evening") }
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
    func leaveIsActivityOfProjectInEconomic(references: [String: String], template: String) async throws {
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
