import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

/// The display of choices, with the first model's five contexts, each of which depends on the previous one.
@Suite struct ReportingRulesTests {
    private static func template(_ objects: ReportingObjects) throws -> ReportingTemplate {
        try #require(objects.templates[FirstModel.templateID])
    }

    private func choices(
        _ names: [(context: String, node: String)], _ change: (inout ReportingObjects) throws -> Void = { _ in }
    ) throws -> (choices: [ReportingRules.Choice], objects: ReportingObjects) {
        var objects = try FirstModel.repaired()
        try change(&objects)
        let selections = try names.map {
            ReportingSelection(
                context: try FirstModel.id($0.context, in: objects), node: try FirstModel.node($0.node, in: objects))
        }
        let choices = ReportingRules.choices(
            for: try Self.template(objects), selections: selections, in: objects)
        return (choices, objects)
    }

    private func shown(_ choice: ReportingRules.Choice, _ objects: ReportingObjects) -> [String] {
        choice.sections.flatMap(\.nodes).compactMap { objects.nodes[$0]?.referenceId }
    }

    @Test func eachSelectionEnablesNextContext() throws {
        let steps = [("Customer", "12346"), ("Project", "ABC124"), ("Phase", "P1"), ("Activity", "A1"), ("Kind", "K1")]
        for count in 0...steps.count {
            let (choices, objects) = try choices(Array(steps.prefix(count)))
            #expect(choices.map(\.name) == steps.map(\.0))
            #expect(choices.map { !$0.selected.isEmpty } == steps.indices.map { $0 < count })
            // Contexts after the next one have no selectable nodes yet.
            #expect(choices.map { $0.sections.isEmpty } == steps.indices.map { $0 > count })
            #expect(choices.map(\.isMissing) == steps.indices.map { $0 >= count })
            if count < steps.count { #expect(shown(choices[count], objects).contains(steps[count].1)) }
        }
    }

    @Test func onlyNodesWithSelectedDependenciesAreDisplayed() throws {
        let (mine, objects) = try choices([("Customer", "12346")])
        #expect(shown(mine[1], objects) == ["ABC124"])
        let (other, _) = try choices([("Customer", "12345")])
        #expect(shown(other[1], objects) == ["ABC123"])
        // Dependencies are alternatives.
        let (both, _) = try choices([("Customer", "12345")]) { objects in
            let project = try FirstModel.node("ABC124", in: objects)
            let customer = try FirstModel.node("12345", in: objects)
            objects.nodes[project]?.dependencies.append(customer)
        }
        #expect(Set(shown(both[1], objects)) == ["ABC123", "ABC124"])
    }

    @Test func changedSelectionClearsDependentSelections() throws {
        let (choices, _) = try choices([
            ("Customer", "12345"), ("Project", "ABC124"), ("Phase", "P1"), ("Activity", "A1"), ("Kind", "K1"),
        ])
        #expect(choices.map { $0.selected.count } == [1, 0, 0, 0, 0])
    }

    @Test func preselectedNodesApplyAndMayBeFixed() throws {
        func fix(_ objects: inout ReportingObjects, _ change: (inout ReportingContext) -> Void) throws {
            let id = try FirstModel.id("Customer", in: objects)
            let customer = try FirstModel.node("12346", in: objects)
            objects.contexts[id]?.preselected = [customer]
            if var context = objects.contexts[id] {
                change(&context)
                objects.contexts[id] = context
            }
        }
        let (open, objects) = try choices([("Customer", "12345")]) { try fix(&$0) { _ in } }
        let chosen = [try FirstModel.node("12345", in: objects)]
        #expect(open[0].isChangeable && open[0].selected == chosen)
        let mine = [try FirstModel.node("12346", in: objects)]
        let (readOnly, _) = try choices([("Customer", "12345")]) { try fix(&$0) { $0.readOnly = true } }
        #expect(!readOnly[0].isChangeable && readOnly[0].isVisible && readOnly[0].selected == mine)
        let (hidden, _) = try choices([("Customer", "12345")]) { try fix(&$0) { $0.visible = false } }
        #expect(!hidden[0].isChangeable && !hidden[0].isVisible && hidden[0].selected == mine)
        // The next choice depends on the effective selection.
        #expect(shown(hidden[1], objects) == ["ABC124"])
    }

    @Test func sectionsLimitDisplayedNodesInOrder() throws {
        let (choices, objects) = try choices([]) { objects in
            let id = try FirstModel.id("Customer", in: objects)
            let items = [try FirstModel.node("12346", in: objects), UUID(), try FirstModel.node("12345", in: objects)]
            objects.contexts[id]?.sections.insert(
                .init(name: "Suggestions", showCount: 1, items: items), at: 0)
        }
        let sections = choices[0].sections
        #expect(sections[0].nodes.compactMap { objects.nodes[$0]?.referenceId } == ["12346", "12345"])
        #expect(sections[0].shownCount == 1)
        // Below a root by title: "Arkyn Studios Aps" before "DSB".
        let all = try #require(sections.last)
        #expect(all.nodes.compactMap { objects.nodes[$0]?.referenceId } == ["12346", "12345"])
        #expect(all.shownCount == all.nodes.count)
    }

    @Test func cyclicTreeIsDisplayedOnce() throws {
        var objects = ReportingObjects()
        let (root, a, b, context) = (UUID(), UUID(), UUID(), UUID())
        objects.nodes = [
            root: ReportingTreeNode(name: "root", parent: b), a: ReportingTreeNode(name: "a", parent: root),
            b: ReportingTreeNode(name: "b", parent: a),
        ]
        objects.contexts[context] = ReportingContext(
            name: "C", required: false, sections: [.init(name: "All", rootNode: root)])
        let template = ReportingTemplate(name: "T", type: "t", reportingContexts: [context, UUID()])
        let choices = ReportingRules.choices(for: template, selections: [], in: objects)
        #expect(choices.map { $0.sections[0].nodes } == [[a, b]])
    }

    /// All displayed choices can be submitted, and no others: the rules for devices and entries agree.
    @Test func displayedChoicesAreExactlyValidSelections() throws {
        let steps = [("Customer", "12346"), ("Project", "ABC124"), ("Phase", "P1"), ("Activity", "A1")]
        let (choices, objects) = try choices(steps)
        let kinds = try #require(choices.last)
        let selections = try steps.map {
            ReportingSelection(
                context: try FirstModel.id($0.0, in: objects), node: try FirstModel.node($0.1, in: objects))
        }
        for node in objects.nodes.keys {
            let entry = TimeEntry(
                reportingTemplate: FirstModel.templateID,
                reporting: selections + [ReportingSelection(context: kinds.context, node: node)],
                entryDate: Day("2015-03-30"), durationSeconds: 5_400)
            let isShown = kinds.sections.contains { $0.nodes.contains(node) }
            #expect(EntryRules.problems(of: entry, in: objects).isEmpty == isShown)
        }
    }

    @Test func fixedChoiceCannotBeChangedByEntry() throws {
        var objects = try FirstModel.repaired()
        let context = try FirstModel.id("Customer", in: objects)
        let customer = try FirstModel.node("12346", in: objects)
        objects.contexts[context]?.preselected = [customer]
        objects.contexts[context]?.readOnly = true
        let entry = TimeEntry(
            reportingTemplate: FirstModel.templateID,
            reporting: [ReportingSelection(context: context, node: try FirstModel.node("12345", in: objects))],
            entryDate: Day("2015-03-30"), durationSeconds: 5_400)
        #expect(EntryRules.problems(of: entry, in: objects).first == "Customer cannot be changed")
    }

    @Test func suggestionsAreOrderedByMostRecentUse() throws {
        let objects = try FirstModel.repaired()
        let context = try FirstModel.id("Customer", in: objects)
        let (a, b) = (try FirstModel.node("12345", in: objects), try FirstModel.node("12346", in: objects))
        func entry(_ node: UUID) -> [ReportingSelection] {
            [ReportingSelection(context: UUID(), node: a), ReportingSelection(context: context, node: node)]
        }
        let recent = [entry(b), entry(UUID()), entry(b), entry(a)]
        #expect(ReportingRules.suggestions(for: context, from: recent, countMax: 5, in: objects) == [b, a])
        #expect(ReportingRules.suggestions(for: context, from: recent, countMax: 1, in: objects) == [b])
    }
}
