import Essentials
import FoundationEssentials
import Model

extension EntryRules {
    /// Maximum number of ancestors between a node and its root, so that a cyclic tree cannot block a rule.
    static let treeDepthMax = 64

    static func reportingProblems(of entry: TimeEntry, in objects: ReportingObjects) -> [String] {
        guard let templateID = entry.reportingTemplate else { return ["Template is missing"] }
        guard let template = objects.templates[templateID] else { return ["Template is not available any more"] }
        var problems: [String] = []
        var earlier: Set<UUID> = []
        let selections = selections(of: entry, in: objects)
        for id in template.reportingContexts {
            guard let context = objects.contexts[id] else {
                problems.append("Template '\(template.name)' refers to a choice that does not exist")
                continue
            }
            let nodes = selections.first { $0.context == id }?.nodes ?? []
            // An entry from the back end may have a value that people cannot select here.
            let isFixed = (context.readOnly || !context.visible) && entry.backendId == nil
            if isFixed, Set(nodes) != Set(context.preselected) {
                problems.append("\(context.name) cannot be changed")
                continue
            }
            if nodes.isEmpty && context.required { problems.append("\(context.name) is missing") }
            problems += nodes.compactMap { problem(of: $0, for: context, after: earlier, in: objects) }
            earlier.formUnion(nodes)
        }
        let stray = entry.reporting.filter { !template.reportingContexts.contains($0.context) }
        return problems + stray.map { strayProblem($0, template, objects) }
    }

    /// Returns the problem of a selected node; `earlier` are the nodes selected in previous contexts.
    private static func problem(
        of id: UUID, for context: ReportingContext, after earlier: Set<UUID>, in objects: ReportingObjects
    ) -> String? {
        guard let node = objects.nodes[id] else { return "\(context.name): the selection is not available any more" }
        let title = node.title ?? node.name
        guard context.sections.contains(where: { shows(id, in: $0, objects) }) else {
            return "\(context.name): '\(title)' is not one of its choices"
        }
        guard ReportingRules.isSelectable(node, after: earlier) else {
            return "\(context.name): '\(title)' does not go with the selections before it"
        }
        return nil
    }

    /// Returns whether a section contains a node: its items, and all nodes below its root, without the root itself.
    private static func shows(_ node: UUID, in section: ReportingContext.Section, _ objects: ReportingObjects) -> Bool {
        if section.items?.contains(node) ?? false { return true }
        guard let root = section.rootNode else { return false }
        var parent = objects.nodes[node]?.parent
        for _ in 0..<treeDepthMax {
            guard let id = parent else { return false }
            if id == root { return true }
            parent = objects.nodes[id]?.parent
        }
        return false
    }

    private static func strayProblem(
        _ selection: ReportingSelection, _ template: ReportingTemplate, _ objects: ReportingObjects
    ) -> String {
        let name = objects.contexts[selection.context]?.name ?? selection.context.text
        return "\(name) is not part of template '\(template.name)'"
    }
}
