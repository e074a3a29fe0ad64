internal import FoundationEssentials
internal import Model

/// Makes the trees, contexts and the template of a back end in which time is reported on one node of each of some
/// flat lists: customer, project, activity.
///
/// Ids are the same in every environment and every run: they are made from the back end's ids in its own namespace.
struct ReportingTrees {
    /// The names of the contexts, in the order a person chooses; each has a tree, and all are required.
    let contexts: [String]
    private let namespace: UUID

    /// How many suggestions are shown at first.
    static let suggestionsShown = 5
    private static let noBytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    init(of backend: String, contexts: [String]) {
        self.contexts = contexts
        namespace = UUID(name: "fieldpost/" + backend, in: UUID(uuid: ReportingTrees.noBytes))
    }

    func id(_ kind: String, _ name: String) -> UUID { UUID(name: kind + "/" + name.lowercased(), in: namespace) }

    /// - Parameters:
    ///   - context: The context whose tree it is in.
    ///   - parent: The node above; the tree's root when absent.
    ///   - name: What a person reads; the reference, or the id, when there is none.
    ///   - dependencies: Nodes of earlier contexts, one of which must be chosen before; none: it can always be chosen.
    func node(
        _ id: UUID, in context: String, below parent: UUID? = nil, referenceId: String?, name: String?,
        dependsOn dependencies: [UUID]
    ) -> Identified<ReportingTreeNode> {
        let name = name.flatMap { $0.isEmpty ? nil : $0 } ?? referenceId ?? id.text
        return Identified(
            id: id,
            fields: ReportingTreeNode(
                referenceId: referenceId, name: name, title: name, parent: parent ?? self.id("root", context),
                hasDependencies: !dependencies.isEmpty, dependencies: dependencies))
    }

    /// - Parameter nodes: All nodes but the roots, each after its parent.
    func data(_ nodes: [Identified<ReportingTreeNode>]) -> ReportingData {
        let roots = contexts.map { Identified(id: id("root", $0), fields: ReportingTreeNode(name: $0)) }
        let contexts = contexts.map { name in
            Identified(
                id: id("context", name),
                fields: ReportingContext(
                    name: name, required: true,
                    sections: [ReportingContext.Section(name: "All", rootNode: id("root", name))]))
        }
        let template = ReportingTemplate(
            name: "Project time registration", type: "project", reportingContexts: contexts.map(\.id))
        return ReportingData(
            nodes: roots + nodes, contexts: contexts,
            templates: [Identified(id: id("template", "project"), fields: template)])
    }
}

extension ReportingData {
    /// Puts the nodes that a person's records used last before all others.
    ///
    /// - Parameter selectionsMax: How many different choices are looked at.
    mutating func suggest(what recent: [BackendEntry], selectionsMax: Int) {
        var seen: [[String: String]] = []
        for entry in recent.sorted(by: { ($0.day, $0.id) > ($1.day, $1.id) }) where !seen.contains(entry.references) {
            seen.append(entry.references)
        }
        var items: [UUID: [UUID]] = [:]
        let lookup = Lookup(self)
        for selection in seen.prefix(selectionsMax).flatMap({ lookup.selections(for: $0) })
        where items[selection.context]?.contains(selection.node) != true {
            items[selection.context, default: []].append(selection.node)
        }
        for index in contexts.indices {
            guard let used = items[contexts[index].id] else { continue }
            contexts[index].fields.sections.insert(
                ReportingContext.Section(
                    name: "Suggestions", showCount: ReportingTrees.suggestionsShown, items: used), at: 0)
        }
    }
}
