import BackendProtocol
import Essentials
import FoundationEssentials
import Model

/// Validation of entries against the person's own reporting data.
enum EntryRules {
    /// Maximum length of an entry in seconds: 24 hours.
    static let durationSecondsMax = 86_400

    /// The selected nodes of one context of an entry.
    struct Selection: Equatable, Sendable {
        /// The context's id.
        let context: UUID
        /// The context's name.
        let name: String
        /// The ids of the entry's selected nodes, or of the context's preselected nodes if the entry selects none.
        let nodes: [UUID]
    }

    /// Returns the problems that prevent the submission, each a sentence for the person who wrote the entry.
    ///
    /// - Parameter textLimit: The maximum length of a text in the back end.
    /// - Returns: Empty if the entry can be submitted. The order is stable: template, contexts in the template's order,
    ///   selections outside the template, time, text.
    static func problems(
        of entry: TimeEntry, in objects: ReportingObjects,
        textLimit: TextLimit = TextLimit(TimeEntry.submittedTextLengthMax, .utf16)
    ) -> [String] {
        reportingProblems(of: entry, in: objects) + timeProblems(of: entry)
            + [entry.text.flatMap(textLimit.problem)].compactMap(\.self)
    }

    /// Returns the selected or preselected nodes per context of the entry's template, in the template's order.
    ///
    /// Unknown contexts, and those without selected and preselected nodes, are omitted.
    static func selections(of entry: TimeEntry, in objects: ReportingObjects) -> [Selection] {
        let template = entry.reportingTemplate.flatMap { objects.templates[$0] }
        return (template?.reportingContexts ?? []).compactMap { id in
            guard let context = objects.contexts[id] else { return nil }
            let selected = entry.reporting.filter { $0.context == id }.map(\.node)
            let nodes = selected.isEmpty ? context.preselected : selected
            return nodes.isEmpty ? nil : Selection(context: id, name: context.name, nodes: nodes)
        }
    }

    private static func timeProblems(of entry: TimeEntry) -> [String] {
        var problems = entry.entryDate == nil ? ["Date is missing"] : []
        switch entry.timeType {
        case .duration:
            guard let seconds = entry.durationSeconds else { return problems + ["Duration is missing"] }
            problems += lengthProblems(seconds)
        case .interval:
            if entry.startTime == nil { problems.append("Start time is missing") }
            if entry.endTime == nil { problems.append("End time is missing") }
            guard let seconds = entry.seconds else { return problems }
            problems += seconds > 0 ? lengthProblems(seconds) : ["End time must be after start time"]
        }
        return problems
    }

    private static func lengthProblems(_ seconds: Int) -> [String] {
        guard seconds > 0 else { return ["Duration must be more than 0"] }
        guard seconds <= durationSecondsMax else { return ["Duration must be at most 24 hours"] }
        guard Hours(seconds: seconds).hundredths > 0 else { return ["Duration must be at least 0.01 hours"] }
        return []
    }
}

/// Validation of the selections.
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
        guard isSelectable(node, after: earlier) else {
            return "\(context.name): '\(title)' does not go with the selections before it"
        }
        return nil
    }

    /// Returns whether a node can be selected after the nodes of previous contexts.
    ///
    /// Dependencies are alternatives: a node with dependencies can be selected if any of them is selected in a previous
    /// context. The first model does not define this; it follows from its example with several dependencies.
    private static func isSelectable(_ node: ReportingTreeNode, after earlier: Set<UUID>) -> Bool {
        !node.hasDependencies || node.dependencies.contains(where: earlier.contains)
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
