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
        Lookup(self).selections(for: references)
    }

    /// What selections are looked up in: for who asks for those of many records.
    package struct Lookup {
        private let contexts: [Identified<ReportingContext>]
        private let nodes: [UUID: ReportingTreeNode]
        private let contextsByRoot: [UUID: Identified<ReportingContext>]
        private let nodesByReference: [String: [UUID]]

        /// Levels of a tree that are followed.
        private static let depthMax = 64

        package init(_ data: ReportingData) {
            contexts = data.contexts
            nodes = Dictionary(data.nodes.map { ($0.id, $0.fields) }) { first, _ in first }
            contextsByRoot = Dictionary(
                data.contexts.flatMap { context in
                    context.fields.sections.compactMap(\.rootNode).map { ($0, context) }
                }
            ) { first, _ in first }
            nodesByReference = Dictionary(
                grouping: data.nodes.filter { $0.fields.referenceId != nil }, by: { $0.fields.referenceId ?? "" }
            ).mapValues { $0.map(\.id) }
        }

        package func selections(for references: [String: String]) -> [ReportingSelection] {
            var chosen: [UUID: UUID] = [:]
            var open: [UUID] = Set(references.values).sorted().flatMap { reference in
                (nodesByReference[reference] ?? []).filter { node in
                    context(of: node).map { references[$0.fields.name] == reference } ?? false
                }
            }
            while let node = open.popLast() {
                guard let context = context(of: node), chosen[context.id] == nil else { continue }
                chosen[context.id] = node
                if let dependencies = nodes[node]?.dependencies, dependencies.count == 1 { open += dependencies }
            }
            return contexts.compactMap { context in
                chosen[context.id].map { ReportingSelection(context: context.id, node: $0) }
            }
        }

        private func context(of node: UUID) -> Identified<ReportingContext>? {
            var top = node
            for _ in 0..<Self.depthMax {
                guard let parent = nodes[top]?.parent else { break }
                top = parent
            }
            return contextsByRoot[top]
        }
    }
}
