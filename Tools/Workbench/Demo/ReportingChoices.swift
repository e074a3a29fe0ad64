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
        guard let own = copy.contents.keys.first(where: { $0.realmClass == .user }),
            let picker = ReportingPicker(ofPerson: own, in: copy.contents), !picker.templates.isEmpty,
            !picker.objects.nodes.isEmpty, picker.objects.danglingReferences.isEmpty
        else { return nil }
        self.init(picker.objects, templates: picker.templates.map(\.id))
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
                let entry = TimeEntry(reportingTemplate: template, reporting: selections)
                if hasProject && objects.problems(of: entry).isEmpty {
                    return Choice(template: template, reporting: selections)
                }
            }
        }
        return nil
    }

    /// A node and what must be chosen before it.
    private func chain(from node: UUID) -> [UUID] {
        var chosen = [node]
        while chosen.count < ReportingObjects.treeDepthMax,
            let before = chosen.last.flatMap({ objects.nodes[$0]?.dependencies.first })
        {
            chosen.append(before)
        }
        return chosen
    }

    private func context(of node: UUID) -> UUID? {
        var top = node
        for _ in 0..<ReportingObjects.treeDepthMax {
            guard let parent = objects.nodes[top]?.parent else { break }
            top = parent
        }
        return contextsByRoot[top]
    }
}
