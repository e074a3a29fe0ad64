import FoundationEssentials
import Model

/// What a person is shown while they choose, context by context: the rules a device follows, as pure functions.
///
/// Dependencies are alternatives: a node with dependencies can be chosen when any of them is among the selections of
/// the contexts before its own. The first model does not say so; its example with several dependencies means it.
enum ReportingRules {
    /// One context of a template, as it is to be shown.
    struct Choice: Equatable, Sendable {
        /// The context's id.
        let context: UUID
        /// Its heading.
        let name: String
        /// Whether an entry needs a selection.
        let isRequired: Bool
        /// Whether it is shown at all.
        let isVisible: Bool
        /// Whether the selection can be changed; what is not shown cannot.
        let isChangeable: Bool
        /// The nodes that count: those selected, else the preselected ones, as far as they can be selected now.
        let selected: [UUID]
        /// The ways to choose, without those that have nothing to choose from now.
        let sections: [Section]

        /// Whether something is still to be chosen.
        var isMissing: Bool { isRequired && selected.isEmpty }
    }

    /// A section with the nodes that can be selected now.
    struct Section: Equatable, Sendable {
        /// Its heading.
        let name: String
        /// The nodes in the order to show them: as listed, or below a root each after its parent and by title.
        let nodes: [UUID]
        /// How many of them are shown before "more".
        let shownCount: Int
    }

    /// The choices of a template, in its order.
    ///
    /// A selection that cannot be made any more, because one before it has changed, is left out, and so are those that
    /// depend on it.
    ///
    /// - Parameter selections: What was chosen so far, in any order.
    static func choices(
        for template: ReportingTemplate, selections: [ReportingSelection], in objects: ReportingObjects
    ) -> [Choice] {
        let children = children(in: objects)
        var earlier: Set<UUID> = []
        return template.reportingContexts.compactMap { id in
            guard let context = objects.contexts[id] else { return nil }
            let sections = context.sections.compactMap { section in
                shown(section, after: earlier, children, objects)
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

    /// Whether a node can be selected after those of the contexts before its own.
    static func isSelectable(_ node: ReportingTreeNode, after earlier: Set<UUID>) -> Bool {
        !node.hasDependencies || node.dependencies.contains(where: earlier.contains)
    }

    /// The nodes that somebody chose for a context, the one chosen last first, each once; nodes that are gone are left
    /// out.
    ///
    /// - Parameter recent: The selections of the person's entries, the newest entry first.
    static func suggestions(
        for context: UUID, from recent: [[ReportingSelection]], countMax: Int, in objects: ReportingObjects
    ) -> [UUID] {
        var found: [UUID] = []
        for selection in recent.joined() where selection.context == context && objects.nodes[selection.node] != nil {
            guard found.count < countMax else { break }
            if !found.contains(selection.node) { found.append(selection.node) }
        }
        return found
    }

    private static func shown(
        _ section: ReportingContext.Section, after earlier: Set<UUID>, _ children: [UUID: [UUID]],
        _ objects: ReportingObjects
    ) -> Section? {
        let all = section.items ?? section.rootNode.map { below($0, children) } ?? []
        let nodes = all.filter { id in objects.nodes[id].map { isSelectable($0, after: earlier) } ?? false }
        guard !nodes.isEmpty else { return nil }
        return Section(
            name: section.name, nodes: nodes, shownCount: min(max(section.showCount ?? nodes.count, 0), nodes.count))
    }

    /// Each node's children by title.
    private static func children(in objects: ReportingObjects) -> [UUID: [UUID]] {
        var children: [UUID: [(title: String, id: UUID)]] = [:]
        for (id, node) in objects.nodes {
            guard let parent = node.parent else { continue }
            children[parent, default: []].append((node.title ?? node.name, id))
        }
        return children.mapValues { list in list.sorted { ($0.title, $0.id) < ($1.title, $1.id) }.map(\.id) }
    }

    /// All below a node, each after its parent; a tree deeper than its bound, or with a cycle, is cut off there.
    private static func below(_ root: UUID, _ children: [UUID: [UUID]]) -> [UUID] {
        var found: [UUID] = []
        var seen: Set<UUID> = [root]
        func add(_ node: UUID, _ depth: Int) {
            guard depth < EntryRules.treeDepthMax else { return }
            for child in children[node] ?? [] where seen.insert(child).inserted {
                found.append(child)
                add(child, depth + 1)
            }
        }
        add(root, 0)
        return found
    }
}
