import DeviceClient
import FoundationEssentials
import Model

/// A person's choices for reporting, from the device's copy.
struct ReportingChoices: Sendable {
    /// A template with a node for each of its contexts.
    struct Choice: Equatable, Sendable {
        let template: UUID
        let reporting: [ReportingSelection]
    }

    private let objects: ReportingObjects
    private let templates: [UUID]
    private let nodesByReference: [String: [UUID]]
    /// Root of a tree → the context that shows the tree.
    private let contextsByRoot: [UUID: UUID]

    /// Levels of a tree that are followed.
    private static let depthMax = 64

    /// - Parameter templates: In the order in which the person is shown them.
    init(_ objects: ReportingObjects, templates: [UUID]) {
        self.objects = objects
        self.templates = templates
        var nodes: [String: [UUID]] = [:]
        for (id, node) in objects.nodes {
            if let reference = node.referenceId { nodes[reference, default: []].append(id) }
        }
        nodesByReference = nodes
        var contexts: [UUID: UUID] = [:]
        for (id, context) in objects.contexts {
            for root in context.sections.compactMap(\.rootNode) { contexts[root] = id }
        }
        contextsByRoot = contexts
    }

    /// Reads the person's choices from the copy.
    ///
    /// - Returns: `nil` while the user or the data the user refers to have not arrived.
    init?(_ copy: DeviceCopy) {
        func decode<Fields: Decodable>(
            _ kind: Kind, _: Fields.Type, in isWanted: (RealmPath) -> Bool = { _ in true }
        ) -> [UUID: Fields] {
            copy.objects(of: kind, in: isWanted).reduce(into: [:]) { fields, item in
                fields[item.id] = try? JSONDecoder().decode(Fields.self, from: Data(item.object.fields))
            }
        }
        guard let user = decode(.user, User.self).values.first, !user.reportingTemplates.isEmpty else { return nil }
        let objects = ReportingObjects(
            templates: decode(.reportingTemplate, ReportingTemplate.self),
            contexts: decode(.reportingContext, ReportingContext.self),
            // A node in the person's own realm can no longer be chosen.
            nodes: decode(.reportingTreeNode, ReportingTreeNode.self) { $0.catalogueID != nil })
        guard user.reportingTemplates.allSatisfy({ objects.templates[$0] != nil }), !objects.nodes.isEmpty,
            objects.danglingReferences.isEmpty
        else { return nil }
        self.init(objects, templates: user.reportingTemplates)
    }

    /// The choice of an accounting code of a project, and of what it depends on.
    func choice(project: String, accountingCode: String) -> Choice? {
        for template in templates {
            guard let contexts = objects.templates[template]?.reportingContexts else { continue }
            for code in nodesByReference[accountingCode] ?? [] {
                let chosen = chain(from: code)
                let selections = contexts.compactMap { context in
                    chosen.first { self.context(of: $0) == context }
                        .map { ReportingSelection(context: context, node: $0) }
                }
                let hasProject = chosen.contains { objects.nodes[$0]?.referenceId == project }
                let isComplete = contexts.allSatisfy { context in
                    selections.contains { $0.context == context } || objects.contexts[context]?.required != true
                }
                if hasProject && isComplete { return Choice(template: template, reporting: selections) }
            }
        }
        return nil
    }

    /// A node and what must be chosen before it.
    private func chain(from node: UUID) -> [UUID] {
        var chosen = [node]
        while chosen.count < Self.depthMax, let last = chosen.last, let before = objects.nodes[last]?.dependencies.first
        {
            chosen.append(before)
        }
        return chosen
    }

    private func context(of node: UUID) -> UUID? {
        var top = node
        for _ in 0..<Self.depthMax {
            guard let parent = objects.nodes[top]?.parent else { break }
            top = parent
        }
        return contextsByRoot[top]
    }
}
