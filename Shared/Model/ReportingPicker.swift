public import FoundationEssentials

/// Determines the templates, sections and nodes that a person can select for an entry.
///
/// The picker offers exactly the selections that `entry-submitter` accepts:
///
/// - After possible selections in earlier contexts, a node is offered if and only if selecting it is no problem.
/// - An entry with offered selections, one per context, has no ``ReportingObjects/problems(of:)`` except missing
///   required selections, and preselected nodes that do not go with the others.
///
/// The back end may have further rules, such as locked periods.
///
/// Creating a picker reads each node once. Create one for each change of the reporting data, not for each selection.
public struct ReportingPicker: Sendable {
    /// The reporting data.
    public let objects: ReportingObjects
    /// The offered templates in display order. Those that no entry can use are omitted: with missing contexts, or with
    /// hidden or read-only contexts whose nodes are missing.
    public let templates: [Identified<ReportingTemplate>]
    /// Titles of nodes that can no longer be selected.
    private let retired: [UUID: ReportingTreeNode]
    /// Each node's children in display order.
    private let children: [UUID: [UUID]]

    /// Creates a picker.
    ///
    /// - Parameters:
    ///   - objects: The person's templates and contexts, and the nodes of their catalogue.
    ///   - templates: The ids of the offered templates in display order, ``User/reportingTemplates``.
    ///   - retired: Nodes of the person's own realm: those of earlier selections, which cannot be selected any more.
    public init(_ objects: ReportingObjects, templates: [UUID], retired: [UUID: ReportingTreeNode] = [:]) {
        self.objects = objects
        self.retired = retired
        self.templates = templates.compactMap { id in
            guard let fields = objects.templates[id], objects.isUsable(fields) else { return nil }
            return Identified(id: id, fields: fields)
        }
        var children: [UUID: [(title: String, id: UUID)]] = [:]
        for (id, node) in objects.nodes {
            guard let parent = node.parent else { continue }
            children[parent, default: []].append((node.displayName.lowercased(), id))
        }
        self.children = children.mapValues { siblings in
            siblings.sorted { left, right in
                if left.title.utf8.elementsEqual(right.title.utf8) { return left.id < right.id }
                return left.title.utf8.lexicographicallyPrecedes(right.title.utf8)
            }.map(\.id)
        }
    }

    /// Returns a node's title, also of a node that can no longer be selected; `nil` if there is no such node.
    public func title(of node: UUID) -> String? { (objects.nodes[node] ?? retired[node])?.displayName }

    /// Returns the choices of an entry's template, with the entry's selections.
    ///
    /// A selection that is no longer possible, because an earlier one or the reporting data changed, is *rejected*: it
    /// does not apply, and nodes that depend on it are not offered.
    ///
    /// The cost depends on the number of nodes in the contexts' sections.
    ///
    /// - Returns: A form without choices if the entry has no template, or one that does not exist. Contexts that do not
    ///   exist are omitted.
    public func form(for entry: TimeEntry) -> ReportingForm {
        let template = entry.reportingTemplate.flatMap { objects.templates[$0] }
        var earlier: Set<UUID> = []
        var choices: [ReportingForm.Choice] = []
        var selections: [ReportingSelection] = []
        for id in template?.reportingContexts ?? [] {
            guard let context = objects.contexts[id] else { continue }
            func isPossible(_ node: UUID) -> Bool {
                objects.problem(of: node, for: id, context, after: earlier) == nil
            }
            let given = entry.reporting.filter { $0.context == id }.map(\.node)
            // A fixed value of a record stays as it is; another one of a new entry is dropped.
            let kept = context.isFixed ? (entry.backendId == nil ? [] : given) : given.filter(isPossible)
            let applied = kept.isEmpty ? context.preselected : kept
            let selected = applied.filter(isPossible)
            var rejected: [UUID] = []
            for node in given + applied where !selected.contains(node) && !rejected.contains(node) {
                rejected.append(node)
            }
            choices.append(
                ReportingForm.Choice(
                    id: id, name: context.name, isRequired: context.required, isVisible: context.visible,
                    isChangeable: !context.isFixed, selected: selected,
                    isPreselected: kept.isEmpty && !selected.isEmpty, rejected: rejected,
                    sections: context.isFixed ? [] : context.sections.compactMap { section($0, after: earlier) }))
            selections += kept.map { ReportingSelection(context: id, node: $0) }
            earlier.formUnion(selected)
        }
        return ReportingForm(choices: choices, selections: selections, problems: objects.problems(of: entry))
    }

    /// Returns an entry's selections after a change of one context.
    ///
    /// - Parameters:
    ///   - node: The context's only selected node; `nil` removes the selection, so that preselected nodes apply.
    ///   - context: The context.
    ///   - entry: The entry with its selections before the change.
    /// - Returns: The possible selections, in the template's order. If the node is not offered, it is not included.
    public func selections(
        bySelecting node: UUID?, for context: UUID, of entry: TimeEntry
    ) -> [ReportingSelection] {
        var entry = entry
        entry.reporting.removeAll { $0.context == context }
        if let node { entry.reporting.append(ReportingSelection(context: context, node: node)) }
        return form(for: entry).selections
    }

    private func section(
        _ section: ReportingContext.Section, after earlier: Set<UUID>
    ) -> ReportingForm.Section? {
        let listed = (section.items ?? []).map { (id: $0, depth: 0) }
        var visited: Set<UUID> = []
        let options = (listed + descendants(of: section.rootNode)).compactMap { item -> ReportingForm.Option? in
            guard let node = objects.nodes[item.id], node.isSelectable(after: earlier),
                visited.insert(item.id).inserted
            else { return nil }
            return ReportingForm.Option(item.id, node, depth: item.depth)
        }
        guard !options.isEmpty else { return nil }
        let shownCount = min(max(section.showCount ?? options.count, 0), options.count)
        return ReportingForm.Section(name: section.name, options: options, shownCount: shownCount)
    }

    /// Returns all nodes below a root, each after its parent, with the number of its ancestors below the root.
    private func descendants(of root: UUID?) -> [(id: UUID, depth: Int)] {
        guard let root else { return [] }
        var nodes: [(id: UUID, depth: Int)] = []
        func add(below parent: UUID, depth: Int) {
            guard depth < ReportingObjects.treeDepthMax else { return }
            // A cycle through the root ends at the root.
            for child in children[parent] ?? [] where child != root {
                nodes.append((child, depth))
                add(below: child, depth: depth + 1)
            }
        }
        add(below: root, depth: 0)
        return nodes
    }
}
