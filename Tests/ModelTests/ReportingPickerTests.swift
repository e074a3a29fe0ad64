import FoundationEssentials
import Model
import TestSupport
import Testing

/// A person's changes of an entry's selections, with the first model's five contexts.
@Suite struct ReportingPickerTests {
    private let objects: ReportingObjects

    init() throws { objects = try FirstModel.repaired() }

    private var picker: ReportingPicker { ReportingPicker(objects, templates: [FirstModel.templateID]) }

    private func node(_ reference: String) throws -> UUID { try FirstModel.node(reference, in: objects) }

    private func context(_ name: String) throws -> UUID { try FirstModel.id(name, in: objects) }

    private func select(_ reference: String?, _ name: String, of entry: inout TimeEntry) throws {
        let node = try reference.map(node)
        entry.reporting = picker.selections(bySelecting: node, for: try context(name), of: entry)
    }

    private func references(_ entry: TimeEntry) -> [String] {
        entry.reporting.compactMap { objects.nodes[$0.node]?.referenceId }
    }

    @Test func changedSelectionRemovesDependentOnes() throws {
        var entry = TimeEntry(reportingTemplate: FirstModel.templateID)
        let steps = [("Customer", "12346"), ("Project", "ABC124"), ("Phase", "P1"), ("Activity", "A1"), ("Kind", "K1")]
        for (name, reference) in steps { try select(reference, name, of: &entry) }
        #expect(references(entry) == steps.map(\.1))
        #expect(picker.form(for: entry).problems == [])
        try select("K2", "Kind", of: &entry)
        #expect(references(entry) == ["12346", "ABC124", "P1", "A1", "K2"])
        try select(nil, "Activity", of: &entry)
        #expect(references(entry) == ["12346", "ABC124", "P1"])
        try select("12345", "Customer", of: &entry)
        #expect(references(entry) == ["12345"])
    }

    @Test func nodeThatIsNotOfferedIsNotSelected() throws {
        var entry = TimeEntry(reportingTemplate: FirstModel.templateID)
        try select("ABC124", "Project", of: &entry)
        #expect(entry.reporting.isEmpty)
        try select("12346", "Customer", of: &entry)
        try select("P1", "Customer", of: &entry)
        #expect(entry.reporting.isEmpty)
        entry.reporting = picker.selections(bySelecting: try node("12346"), for: UUID(), of: entry)
        #expect(entry.reporting.isEmpty)
    }

    /// A node that the catalogue does not have any more has its title from the person's own realm.
    @Test func retiredNodeHasATitleAndIsRejected() throws {
        var current = objects
        let customer = try node("12346")
        let removed = current.nodes.removeValue(forKey: customer)
        let retired = try #require(removed)
        let picker = ReportingPicker(current, templates: [], retired: [customer: retired])
        let entry = TimeEntry(
            reportingTemplate: FirstModel.templateID,
            reporting: [ReportingSelection(context: try context("Customer"), node: customer)])
        let form = picker.form(for: entry)
        let choice = try #require(form.choices.first)
        #expect(choice.rejected == [customer] && choice.selected.isEmpty && form.selections.isEmpty)
        #expect(picker.title(of: customer) == retired.title)
        #expect(picker.title(of: UUID()) == nil)
        #expect(form.problems.first?.code == .nodeUnavailable && form.problems.first?.node == customer)
        #expect(picker.templates.isEmpty)
    }
}
