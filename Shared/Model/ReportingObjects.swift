import Essentials
public import FoundationEssentials

/// The reporting data one person can see, by id: what rules about an entry look things up in.
public struct ReportingObjects: Equatable, Sendable {
    /// Templates by id.
    public var templates: [UUID: ReportingTemplate]
    /// Contexts by id.
    public var contexts: [UUID: ReportingContext]
    /// Tree nodes by id.
    public var nodes: [UUID: ReportingTreeNode]

    /// Reporting data, empty unless given.
    public init(
        templates: [UUID: ReportingTemplate] = [:], contexts: [UUID: ReportingContext] = [:],
        nodes: [UUID: ReportingTreeNode] = [:]
    ) {
        self.templates = templates
        self.contexts = contexts
        self.nodes = nodes
    }

    /// References that lead nowhere, one readable message each, in a stable order. Empty when the data is whole.
    public var danglingReferences: [String] {
        var found: [String] = []
        for (id, node) in nodes {
            if let parent = node.parent, nodes[parent] == nil {
                found.append("node '\(node.name)' (\(id.text)): parent \(parent.text) does not exist")
            }
            for dependency in node.dependencies where nodes[dependency] == nil {
                found.append("node '\(node.name)' (\(id.text)): dependency \(dependency.text) does not exist")
            }
        }
        for (id, context) in contexts {
            let label = "context '\(context.name)' (\(id.text))"
            for section in context.sections {
                let references = (section.items ?? []) + [section.rootNode].compactMap { $0 }
                for reference in references where nodes[reference] == nil {
                    found.append("\(label), section '\(section.name)': node \(reference.text) does not exist")
                }
            }
            for reference in context.preselected where nodes[reference] == nil {
                found.append("\(label), preselected: node \(reference.text) does not exist")
            }
        }
        for (id, template) in templates {
            for context in template.reportingContexts where contexts[context] == nil {
                found.append("template '\(template.name)' (\(id.text)): context \(context.text) does not exist")
            }
        }
        return found.sorted()
    }
}
