import BackendProtocol
import Backends
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import KeyedWorker

/// Edits of entries whose environment declares its templates.
@Suite(.ownThreads) struct TemplateEditTests {
    private typealias World = BackendWorld
    private let id = UUID()

    private static func templates(costCentres: [String]) -> String {
        let nodes = costCentres.map { #"{"referenceId": "\#($0)"}"# }.joined(separator: ",")
        return """
            {"lists": [{"name": "costCentres", "nodes": [\(nodes)]}],
             "templates": [{"key": "project", "name": "P", "type": "p", "contexts": [
              {"name": "Customer", "list": "customers"}, {"name": "Project", "list": "projects"},
              {"name": "Accounting code", "list": "wbsElements", "field": "WBSElement"},
              {"name": "Cost centre", "list": "costCentres", "field": "ReceiverCostCenter", "required": false}]}]}
            """
    }

    /// The back office set a cost centre that no phone can select: an edit of the text keeps it.
    @Test func unselectableValueIsKept() async throws {
        try await World.run(.sap, templates: Self.templates(costCentres: ["1010"])) { world in
            let record = try await world.release(id)
            let office = SAPBackend(
                SAPSettings(baseURL: world.url, user: "FIELDPOST", password: "sandbox"),
                templates: try JSONDecoder().decode(
                    TemplateDeclarations.self, from: Data(Self.templates(costCentres: ["9999"]).utf8)),
                client: world.client, today: { World.day })
            _ = try await office.update(
                record,
                to: Submission(
                    marker: EntryMarker.marker(of: id), person: world.person, day: World.day,
                    durationSeconds: 5_400, text: "survey",
                    references: ["Accounting code": "P1.1", "Cost centre": "9999"]))
            try await world.poll()
            #expect(try world.entry(id)?.reporting.count == 3)
            try world.edit(id) { $0.text = "survey, corrected" }
            try await world.work(id)
            #expect(try world.entry(id)?.status == .released)
            let current = try await world.record(record)
            #expect(current.text == "survey, corrected")
            #expect(current.references == ["Accounting code": "P1.1", "Cost centre": "9999"])
        }
    }
}
