internal import FoundationEssentials
public import Model

/// What one person may report on.
public struct ReportingData: Equatable, Sendable {
    /// All trees, each node after its parent; roots are nodes too. The same for everybody with the same permissions.
    public var nodes: [Identified<ReportingTreeNode>]
    /// The choices, with the person's own suggestions.
    public var contexts: [Identified<ReportingContext>]
    /// What can be registered.
    public var templates: [Identified<ReportingTemplate>]

    /// Reporting data.
    public init(
        nodes: [Identified<ReportingTreeNode>], contexts: [Identified<ReportingContext>],
        templates: [Identified<ReportingTemplate>]
    ) {
        self.nodes = nodes
        self.contexts = contexts
        self.templates = templates
    }

    /// The selections that a record's references stand for.
    ///
    /// A choice the record does not tell follows when a chosen node depends on exactly one node of another context:
    /// an accounting code's project, and the project's customer. References to nodes that are gone give nothing.
    public func selections(for references: [String: String]) -> [ReportingSelection] {
        let nodesByID = Dictionary(nodes.map { ($0.id, $0.fields) }) { first, _ in first }
        let contextsByRoot = Dictionary(
            contexts.flatMap { context in context.fields.sections.compactMap(\.rootNode).map { ($0, context) } }
        ) { first, _ in first }
        func context(of node: UUID) -> Identified<ReportingContext>? {
            var top = node
            for _ in 0..<ReportingData.depthMax {
                guard let parent = nodesByID[top]?.parent else { break }
                top = parent
            }
            return contextsByRoot[top]
        }
        var chosen: [UUID: UUID] = [:]
        var open: [UUID] = nodes.compactMap { node in
            guard let referenceID = node.fields.referenceId, references.values.contains(referenceID),
                let context = context(of: node.id), references[context.fields.name] == referenceID
            else { return nil }
            return node.id
        }
        while let node = open.popLast() {
            guard let context = context(of: node), chosen[context.id] == nil else { continue }
            chosen[context.id] = node
            if let dependencies = nodesByID[node]?.dependencies, dependencies.count == 1 { open += dependencies }
        }
        return contexts.compactMap { context in
            chosen[context.id].map { ReportingSelection(context: context.id, node: $0) }
        }
    }

    /// Levels of a tree that are followed.
    private static let depthMax = 64
}
