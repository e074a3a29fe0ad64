import FoundationEssentials
import Model

/// The choices of a template as displayed during selection: the rules of a device, as pure functions.
///
/// Dependencies are alternatives: a node with dependencies can be selected if any of them is selected in a previous
/// context. The first model does not define this; it follows from its example with several dependencies.
enum ReportingRules {
    /// One context of a template as displayed.
    struct Choice: Equatable, Sendable {
        /// The context's id.
        let context: UUID
        /// Its heading.
        let name: String
        /// Whether an entry needs a selection.
        let isRequired: Bool
        /// Whether it is displayed.
        let isVisible: Bool
        /// Whether the selection can be changed; a hidden one cannot.
        let isChangeable: Bool
        /// The selected or preselected nodes that can be selected now.
        let selected: [UUID]
        /// The sections that have selectable nodes.
        let sections: [Section]

        /// Whether a required selection is missing.
        var isMissing: Bool { isRequired && selected.isEmpty }
    }

    /// A section with its currently selectable nodes.
    struct Section: Equatable, Sendable {
        /// Its heading.
        let name: String
        /// The nodes in display order: as listed, or below a root each after its parent and by title.
        let nodes: [UUID]
        /// The number of nodes that are displayed before "more".
        let shownCount: Int
    }

    /// Returns the choices of a template in its order.
    ///
    /// Selections that are no longer possible because an earlier one changed are omitted, with those that depend on
    /// them.
    ///
    /// - Parameter selections: The current selections, in any order.
    static func choices(
        for template: ReportingTemplate, selections: [ReportingSelection], in objects: ReportingObjects
    ) -> [Choice] {
        let children = children(in: objects)
        var earlier: Set<UUID> = []
        return template.reportingContexts.compactMap { id in
            guard let context = objects.contexts[id] else { return nil }
            let sections = context.sections.compactMap { section in
                display(section, after: earlier, children, objects)
            }
            let selectable = Set(sections.flatMap(\.nodes))
            let isChangeable = context.visible && !context.readOnly
            let given = isChangeable ? selections.filter { $0.context == id }.map(\.node) : []
            let selected = (given.isEmpty ? context.preselected : given).filter(selectable.contains)
            earlier.formUnion(selected)
            return Choice(
                context: id, name: context.name, isRequired: context.required, isVisible: context.visible,
                isChangeable: isChangeable, selected: selected, sections: sections)
        }
    }

    /// Returns whether a node can be selected after the nodes of previous contexts.
    static func isSelectable(_ node: ReportingTreeNode, after earlier: Set<UUID>) -> Bool {
        !node.hasDependencies || node.dependencies.contains(where: earlier.contains)
    }

    /// Returns the existing nodes that were selected for a context, most recent first and without duplicates.
    ///
    /// - Parameter recent: The selections of the person's entries, the newest entry first.
    static func suggestions(
        for context: UUID, from recent: [[ReportingSelection]], countMax: Int, in objects: ReportingObjects
    ) -> [UUID] {
        var suggestions: [UUID] = []
        for selection in recent.joined() where selection.context == context && objects.nodes[selection.node] != nil {
            guard suggestions.count < countMax else { break }
            if !suggestions.contains(selection.node) { suggestions.append(selection.node) }
        }
        return suggestions
    }

    private static func display(
        _ section: ReportingContext.Section, after earlier: Set<UUID>, _ children: [UUID: [UUID]],
        _ objects: ReportingObjects
    ) -> Section? {
        let all = section.items ?? section.rootNode.map { below($0, children) } ?? []
        let nodes = all.filter { id in objects.nodes[id].map { isSelectable($0, after: earlier) } ?? false }
        guard !nodes.isEmpty else { return nil }
        return Section(
            name: section.name, nodes: nodes, shownCount: min(max(section.showCount ?? nodes.count, 0), nodes.count))
    }

    /// Returns each node's children by title.
    private static func children(in objects: ReportingObjects) -> [UUID: [UUID]] {
        var children: [UUID: [(title: String, id: UUID)]] = [:]
        for (id, node) in objects.nodes {
            guard let parent = node.parent else { continue }
            children[parent, default: []].append((node.title ?? node.name, id))
        }
        return children.mapValues { list in list.sorted { ($0.title, $0.id) < ($1.title, $1.id) }.map(\.id) }
    }

    /// Returns all nodes below a node, each after its parent; levels below the depth limit and cycles are omitted.
    private static func below(_ root: UUID, _ children: [UUID: [UUID]]) -> [UUID] {
        var nodes: [UUID] = []
        var visited: Set<UUID> = [root]
        func add(_ node: UUID, _ depth: Int) {
            guard depth < EntryRules.treeDepthMax else { return }
            for child in children[node] ?? [] where visited.insert(child).inserted {
                nodes.append(child)
                add(child, depth + 1)
            }
        }
        add(root, 0)
        return nodes
    }
}
