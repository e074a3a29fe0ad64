import Essentials
public import FoundationEssentials

/// The reporting data that one person can read, by id, for the rules about entries.
public struct ReportingObjects: Equatable, Sendable {
    /// Templates by id.
    public var templates: [UUID: ReportingTemplate]
    /// Contexts by id.
    public var contexts: [UUID: ReportingContext]
    /// Tree nodes by id.
    public var nodes: [UUID: ReportingTreeNode]

    /// Creates reporting data, empty by default.
    public init(
        templates: [UUID: ReportingTemplate] = [:], contexts: [UUID: ReportingContext] = [:],
        nodes: [UUID: ReportingTreeNode] = [:]
    ) {
        self.templates = templates
        self.contexts = contexts
        self.nodes = nodes
    }

    /// References to missing objects, one readable message each, in a stable order. Empty if there are none.
    public var danglingReferences: [String] {
        var messages: [String] = []
        for (id, node) in nodes {
            if let parent = node.parent, nodes[parent] == nil {
                messages.append("node '\(node.name)' (\(id.text)): parent \(parent.text) does not exist")
            }
            for dependency in node.dependencies where nodes[dependency] == nil {
                messages.append("node '\(node.name)' (\(id.text)): dependency \(dependency.text) does not exist")
            }
        }
        for (id, context) in contexts {
            let label = "context '\(context.name)' (\(id.text))"
            for section in context.sections {
                let references = (section.items ?? []) + [section.rootNode].compactMap { $0 }
                for reference in references where nodes[reference] == nil {
                    messages.append("\(label), section '\(section.name)': node \(reference.text) does not exist")
                }
            }
            for reference in context.preselected where nodes[reference] == nil {
                messages.append("\(label), preselected: node \(reference.text) does not exist")
            }
        }
        for (id, template) in templates {
            for context in template.reportingContexts where contexts[context] == nil {
                messages.append("template '\(template.name)' (\(id.text)): context \(context.text) does not exist")
            }
        }
        return messages.sorted()
    }
}
