import Essentials
import Foundation
import Model

/// A file of reporting trees in the first model's nested form, with the contexts and templates that go with them.
///
/// It is one tree, an array of trees, or an object of `trees`, `contexts` and `templates`.
struct TreeFile: Decodable {
    private struct Template: Decodable {
        let id: UUID
        let name: String
        let type: String
        let reportingContexts: [ReportingTree.Reference]?

        var object: Identified<ReportingTemplate> {
            let contexts = (reportingContexts ?? []).map(\.id)
            return Identified(
                id: id, fields: ReportingTemplate(name: name, type: type, reportingContexts: contexts))
        }
    }

    private enum CodingKeys: CodingKey, CaseIterable { case trees, contexts, templates }

    /// Parents come before their children.
    let nodes: [Identified<ReportingTreeNode>]
    let contexts: [Identified<ReportingContext>]
    let templates: [Identified<ReportingTemplate>]

    static let bytesMax = 64 * 1024 * 1024

    init(from decoder: any Decoder) throws {
        var trees: [ReportingTree] = []
        var (contexts, templates): ([ReportingTree.Context], [Template]) = ([], [])
        if (try? decoder.unkeyedContainer()) != nil {
            trees = try decoder.singleValueContainer().decode([ReportingTree].self)
        } else {
            let file = try decoder.container(keyedBy: CodingKeys.self)
            let other = (try? decoder.container(keyedBy: TreeFileShape.AnyKey.self).allKeys.map(\.stringValue)) ?? []
            if Self.isTree(other) {
                trees = [try decoder.singleValueContainer().decode(ReportingTree.self)]
            } else {
                trees = try file.decodeIfPresent([ReportingTree].self, forKey: .trees) ?? []
                contexts = try file.decodeIfPresent([ReportingTree.Context].self, forKey: .contexts) ?? []
                templates = try file.decodeIfPresent([Template].self, forKey: .templates) ?? []
            }
        }
        nodes = trees.flatMap { $0.flatten() }
        self.contexts = contexts.map(\.object)
        self.templates = templates.map(\.object)
    }

    /// Whether an object with these keys is a tree; otherwise it is a file with several lists.
    static func isTree(_ keys: [String]) -> Bool {
        let names = Set(CodingKeys.allCases.map(\.stringValue))
        return keys.contains { ["id", "name", "children"].contains($0) } && !keys.contains(where: names.contains)
    }

    /// Reads and validates a file.
    ///
    /// - Throws: `CommandFailure` with the problems.
    static func read(_ path: String) throws -> TreeFile {
        let data = try TextFile.read(path, bytesMax: bytesMax)
        do {
            try JSONCheck.checkKeys(ofFile: Array(data))
            let problems = try JSONDecoder().decode(TreeFileShape.self, from: data).problems
            guard problems.isEmpty else { throw CommandFailure("\(path): \(problems.text)") }
            return try JSONDecoder().decode(TreeFile.self, from: data)
        } catch let problem as JSONError {
            throw CommandFailure("\(path): \(problem)")
        } catch let error as DecodingError {
            throw CommandFailure("\(path): \(error.locatedDescription)")
        }
    }

    var objects: ReportingObjects {
        ReportingObjects(
            templates: Dictionary(templates.map { ($0.id, $0.fields) }) { first, _ in first },
            contexts: Dictionary(contexts.map { ($0.id, $0.fields) }) { first, _ in first },
            nodes: Dictionary(nodes.map { ($0.id, $0.fields) }) { first, _ in first })
    }

    /// The ids to which its objects refer and which it does not contain.
    var externalReferences: (nodes: Set<UUID>, contexts: Set<UUID>) {
        var referenced = Set(nodes.flatMap(\.fields.dependencies))
        for context in contexts {
            referenced.formUnion(context.fields.preselected)
            for section in context.fields.sections {
                referenced.formUnion(section.items ?? [])
                if let root = section.rootNode { referenced.insert(root) }
            }
        }
        return (
            referenced.subtracting(nodes.map(\.id)),
            Set(templates.flatMap(\.fields.reportingContexts)).subtracting(contexts.map(\.id))
        )
    }

    /// Returns the reasons why the file cannot be imported.
    ///
    /// - Parameter stored: The ids to which it refers and that are stored.
    func problems(stored: (nodes: Set<UUID>, contexts: Set<UUID>)) -> TreeFileProblems {
        var problems = TreeFileProblems()
        if nodes.isEmpty && contexts.isEmpty && templates.isEmpty { problems.add("the file is empty") }
        checkDuplicates(nodes.map { ($0.id, $0.fields.name) }, "node", &problems)
        checkDuplicates(contexts.map { ($0.id, $0.fields.name) }, "context", &problems)
        checkDuplicates(templates.map { ($0.id, $0.fields.name) }, "template", &problems)
        for node in nodes {
            let texts = [node.fields.name, node.fields.title, node.fields.referenceId]
            check(texts, "node '\(node.fields.name)' (\(node.id.text))", &problems)
        }
        for context in contexts {
            let label = "context '\(context.fields.name)' (\(context.id.text))"
            check([context.fields.name] + context.fields.sections.map(\.name), label, &problems)
            for section in context.fields.sections where section.items != nil && section.rootNode != nil {
                problems.add("\(label): the section '\(section.name)' has 'items' and 'rootNode'; give one of them")
            }
        }
        for template in templates {
            let label = "template '\(template.fields.name)' (\(template.id.text))"
            check([template.fields.name, template.fields.type], label, &problems)
        }
        // Stored objects are represented without their own references, which are not part of the file.
        var objects = objects
        for id in stored.nodes { objects.nodes[id] = ReportingTreeNode(name: "") }
        for id in stored.contexts { objects.contexts[id] = ReportingContext(name: "", required: false) }
        for dangling in objects.danglingReferences { problems.add(dangling) }
        return problems
    }

    private func checkDuplicates(
        _ named: [(id: UUID, name: String)], _ kind: String, _ problems: inout TreeFileProblems
    ) {
        var names: [UUID: String] = [:]
        for (id, name) in named {
            if let first = names.updateValue(name, forKey: id) {
                problems.add("\(kind) '\(name)': '\(first)' has the same id \(id.text)")
            }
        }
    }

    private func check(_ texts: [String?], _ label: @autoclosure () -> String, _ problems: inout TreeFileProblems) {
        if texts.contains(where: { $0?.utf8.contains(0) ?? false }) {
            problems.add("\(label()): a text has U+0000, which cannot be stored")
        }
        if let name = texts.first, let objection = name.flatMap({ DisplayName.objection(to: $0, of: "name") }) {
            problems.add("\(label()): \(objection)")
        }
    }
}
