import Essentials
package import FoundationEssentials

extension ReportingObjects {
    /// Maximum number of levels below a root. Deeper nodes cannot be selected, and a cyclic tree cannot block a rule.
    public static let treeDepthMax = 64

    /// The selected nodes of one context of an entry.
    package struct ContextSelection: Equatable, Sendable {
        /// The context's id.
        package let context: UUID
        /// The context's name.
        package let name: String
        /// The ids of the entry's selected nodes, or of the context's preselected nodes if the entry selects none.
        package let nodes: [UUID]
    }

    /// Returns the problems of an entry's template and selections.
    ///
    /// `entry-submitter` rejects an entry for exactly these problems, and for those of its date, duration and text.
    /// ``ReportingPicker`` offers only selections without them.
    ///
    /// - Returns: Empty if there are none. The order is stable: contexts in the template's order, then selections
    ///   outside the template in the entry's order.
    public func problems(of entry: TimeEntry) -> [ReportingProblem] {
        guard let templateID = entry.reportingTemplate else {
            return [ReportingProblem(.templateMissing, "Template is missing")]
        }
        guard let template = templates[templateID] else {
            return [ReportingProblem(.templateUnavailable, "Template is not available any more")]
        }
        var problems: [ReportingProblem] = []
        var earlier: Set<UUID> = []
        for id in template.reportingContexts {
            guard let context = contexts[id] else {
                let message = "Template '\(template.name)' refers to a choice that does not exist"
                problems.append(ReportingProblem(.contextUnavailable, context: id, message))
                continue
            }
            let nodes = entry.selectedNodes(of: id, context)
            if context.isFixed(in: entry), Set(nodes) != Set(context.preselected) {
                problems.append(ReportingProblem(.selectionFixed, context: id, "\(context.name) cannot be changed"))
                continue
            }
            if nodes.isEmpty, context.required {
                problems.append(ReportingProblem(.selectionMissing, context: id, "\(context.name) is missing"))
            }
            if nodes.count > 1 {
                let message = "Only one \(context.name) can be selected"
                problems.append(ReportingProblem(.selectionAmbiguous, context: id, message))
            }
            problems += nodes.compactMap { problem(of: $0, for: id, context, after: earlier) }
            earlier.formUnion(nodes)
        }
        for selection in entry.reporting where !template.reportingContexts.contains(selection.context) {
            let name = contexts[selection.context]?.name ?? selection.context.text
            let message = "\(name) is not part of template '\(template.name)'"
            problems.append(
                ReportingProblem(.contextNotInTemplate, context: selection.context, node: selection.node, message))
        }
        return problems
    }

    /// Returns the selected or preselected nodes per context of the entry's template, in the template's order.
    ///
    /// Unknown contexts, and those without selected and preselected nodes, are omitted.
    package func selections(of entry: TimeEntry) -> [ContextSelection] {
        let template = entry.reportingTemplate.flatMap { templates[$0] }
        return (template?.reportingContexts ?? []).compactMap { id in
            guard let context = contexts[id] else { return nil }
            let nodes = entry.selectedNodes(of: id, context)
            return nodes.isEmpty ? nil : ContextSelection(context: id, name: context.name, nodes: nodes)
        }
    }

    /// Returns whether a new entry can use a template: its contexts exist, and the preselected nodes of fixed contexts
    /// are valid after some selections.
    func isUsable(_ template: ReportingTemplate) -> Bool {
        template.reportingContexts.allSatisfy { id in
            guard let context = contexts[id] else { return false }
            guard context.isFixed else { return true }
            let nodes = context.preselected
            guard nodes.count <= 1, !(nodes.isEmpty && context.required) else { return false }
            return nodes.allSatisfy { node in
                let code = problem(of: node, for: id, context, after: [])?.code
                return code == nil || code == .nodeExcluded
            }
        }
    }

    /// Returns the problem of a selected node; `earlier` are the nodes selected in previous contexts.
    func problem(
        of id: UUID, for contextID: UUID, _ context: ReportingContext, after earlier: Set<UUID>
    ) -> ReportingProblem? {
        func rejection(_ code: ReportingProblem.Code, _ text: String) -> ReportingProblem {
            ReportingProblem(code, context: contextID, node: id, "\(context.name): \(text)")
        }
        guard let node = nodes[id] else {
            return rejection(.nodeUnavailable, "the selection is not available any more")
        }
        guard context.sections.contains(where: { shows(id, in: $0) }) else {
            return rejection(.nodeNotOffered, "'\(node.displayName)' is not one of its choices")
        }
        guard node.isSelectable(after: earlier) else {
            return rejection(.nodeExcluded, "'\(node.displayName)' does not go with the selections before it")
        }
        return nil
    }

    /// Returns whether a section contains a node: its items, and all nodes below its root, without the root itself.
    private func shows(_ node: UUID, in section: ReportingContext.Section) -> Bool {
        if section.items?.contains(node) ?? false { return true }
        guard let root = section.rootNode, node != root else { return false }
        var parent = nodes[node]?.parent
        for _ in 0..<Self.treeDepthMax {
            guard let id = parent else { return false }
            if id == root { return true }
            parent = nodes[id]?.parent
        }
        return false
    }
}

extension TimeEntry {
    /// Returns the selected nodes of a context, or its preselected nodes if the entry selects none.
    func selectedNodes(of id: UUID, _ context: ReportingContext) -> [UUID] {
        let selected = reporting.filter { $0.context == id }.map(\.node)
        return selected.isEmpty ? context.preselected : selected
    }
}

extension ReportingContext {
    /// Returns whether an entry can have only the preselected nodes. An entry from the back end may have a value that
    /// people cannot select here.
    func isFixed(in entry: TimeEntry) -> Bool { isFixed && entry.backendId == nil }
}

extension ReportingTreeNode {
    /// The title, or the name without one.
    var displayName: String { title ?? name }

    /// Returns whether the node can be selected after the nodes of previous contexts.
    ///
    /// Dependencies are alternatives: a node with dependencies can be selected if any of them is selected in a previous
    /// context. The first model does not define this; it follows from its example with several dependencies.
    func isSelectable(after earlier: Set<UUID>) -> Bool {
        !hasDependencies || dependencies.contains(where: earlier.contains)
    }
}
