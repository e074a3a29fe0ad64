internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

/// Creates the trees, contexts and templates of an environment from the back end's lists and the declarations.
///
/// Ids are deterministic: they are derived from the back end's ids and from the declarations' names and keys, in the
/// namespace of the kind of back end.
struct ReportingTrees {
    private let vocabulary: BackendVocabulary
    private let namespace: UUID

    /// Number of suggestions that are displayed initially.
    static let suggestionsShown = 5
    private static let noBytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    /// - Parameter name: The name of the namespace, which never changes.
    init(_ name: String, _ vocabulary: BackendVocabulary) {
        self.vocabulary = vocabulary
        namespace = UUID(name: "fieldpost/" + name, in: UUID(uuid: ReportingTrees.noBytes))
    }

    func id(_ kind: String, _ name: String) -> UUID { UUID(name: kind + "/" + name.lowercased(), in: namespace) }

    private func root(of list: String) -> UUID {
        vocabulary.list(named: list).map { id("root", $0.root) } ?? id("root", "list/" + list)
    }

    /// - Parameters:
    ///   - list: The list of the tree.
    ///   - parent: The parent node; the tree's root by default.
    ///   - name: The displayed name; by default the reference, or the id.
    ///   - dependencies: Nodes of earlier contexts, one of which must be selected first; without any, the node can
    ///     always be selected.
    func node(
        _ id: UUID, in list: String, below parent: UUID? = nil, referenceId: String?, name: String?,
        dependsOn dependencies: [UUID]
    ) -> Identified<ReportingTreeNode> {
        let name = name.flatMap { $0.isEmpty ? nil : $0 } ?? referenceId ?? id.text
        return Identified(
            id: id,
            fields: ReportingTreeNode(
                referenceId: referenceId, name: name, title: name, parent: parent ?? root(of: list),
                hasDependencies: !dependencies.isEmpty, dependencies: dependencies))
    }

    /// - Parameter nodes: All nodes of the back end's lists except the roots, each after its parent.
    func data(
        _ nodes: [Identified<ReportingTreeNode>], as declarations: TemplateDeclarations
    ) -> ReportingData {
        let used = declarations.templates.flatMap(\.contexts).map(\.list)
        let lists = used.enumerated().filter { !used[..<$0.offset].contains($0.element) }.map(\.element)
        let roots = lists.map { name in
            Identified(
                id: root(of: name), fields: ReportingTreeNode(name: vocabulary.list(named: name)?.root ?? name))
        }
        let isUsed = Set(roots.map(\.id))
        let trees = lists.compactMap { declarations.list(named: $0) }.flatMap { self.nodes(of: $0) }
        let all = roots + belonging(nodes, to: isUsed) + trees
        var choices = NodeIndex(all)
        var data = ReportingData(nodes: all, contexts: [], templates: [])
        for template in declarations.templates {
            // A template is useless to a person who lacks one of its fixed choices.
            guard let contexts = contexts(of: template, &choices) else { continue }
            data.contexts += contexts
            data.templates.append(
                Identified(
                    id: id("template", template.key),
                    fields: ReportingTemplate(
                        name: template.name, type: template.type, reportingContexts: contexts.map(\.id))))
        }
        return data
    }

    /// Removes nodes of trees that no context uses.
    private func belonging(
        _ nodes: [Identified<ReportingTreeNode>], to roots: Set<UUID>
    ) -> [Identified<ReportingTreeNode>] {
        var included = roots
        return nodes.filter { node in
            guard let parent = node.fields.parent, included.contains(parent) else { return false }
            included.insert(node.id)
            return true
        }
    }

    private func nodes(of list: TemplateDeclarations.List) -> [Identified<ReportingTreeNode>] {
        func all(_ nodes: [TemplateDeclarations.Node], below parent: UUID?) -> [Identified<ReportingTreeNode>] {
            nodes.flatMap { node in
                let id = id("node", list.name + "/" + node.referenceId)
                let own = self.node(
                    id, in: list.name, below: parent, referenceId: node.referenceId, name: node.title, dependsOn: [])
                return [own] + all(node.children, below: id)
            }
        }
        return all(list.nodes, below: nil)
    }

    /// - Returns: `nil` if a fixed choice does not exist.
    private func contexts(
        of template: TemplateDeclarations.Template, _ choices: inout NodeIndex
    ) -> [Identified<ReportingContext>]? {
        var contexts: [Identified<ReportingContext>] = []
        for context in template.contexts {
            let preselected = context.preselected.compactMap { choices.node($0, below: root(of: context.list)) }
            if context.isFixed, preselected.count < context.preselected.count { return nil }
            // The contexts of the built-in template had these ids before there were other templates.
            let name = template.key == Self.builtInKey ? context.name : template.key + "/" + context.name
            contexts.append(
                Identified(
                    id: id("context", name),
                    fields: ReportingContext(
                        name: context.name, required: context.required,
                        sections: [ReportingContext.Section(name: "All", rootNode: root(of: context.list))],
                        preselected: preselected, visible: context.visible, readOnly: context.readOnly)))
        }
        return contexts
    }

    /// The key of the template of an environment without declarations.
    static let builtInKey = "project"

    /// An index of nodes by root and reference.
    private struct NodeIndex {
        private let nodes: [Identified<ReportingTreeNode>]
        private lazy var byRoot: [UUID: [String: UUID]] = {
            var rootByNode: [UUID: UUID] = [:]
            var index: [UUID: [String: UUID]] = [:]
            for node in nodes {
                let root = node.fields.parent.flatMap { rootByNode[$0] } ?? node.id
                rootByNode[node.id] = root
                if let reference = node.fields.referenceId, index[root]?[reference] == nil {
                    index[root, default: [:]][reference] = node.id
                }
            }
            return index
        }()

        init(_ nodes: [Identified<ReportingTreeNode>]) { self.nodes = nodes }

        mutating func node(_ reference: String, below root: UUID) -> UUID? { byRoot[root]?[reference] }
    }
}

extension ReportingData {
    /// Adds the most recently used nodes of a person's records as suggestions, before all other choices.
    ///
    /// - Parameter selectionsMax: Maximum number of different selections that are considered.
    mutating func addSuggestions(from recent: [BackendEntry], selectionsMax: Int) {
        var distinct: [[String: String]] = []
        for entry in recent.sorted(by: { ($0.day, $0.id) > ($1.day, $1.id) })
        where !distinct.contains(entry.references) {
            distinct.append(entry.references)
        }
        var items: [UUID: [UUID]] = [:]
        let lookup = Lookup(self)
        for selection in distinct.prefix(selectionsMax).flatMap({ lookup.meaning(of: $0).selections })
        where items[selection.context]?.contains(selection.node) != true {
            items[selection.context, default: []].append(selection.node)
        }
        for index in contexts.indices {
            guard let used = items[contexts[index].id], !contexts[index].fields.isFixed else { continue }
            contexts[index].fields.sections.insert(
                ReportingContext.Section(
                    name: "Suggestions", showCount: ReportingTrees.suggestionsShown, items: used), at: 0)
        }
    }
}
