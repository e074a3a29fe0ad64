/// The templates of an environment, and lists of choices that the back end does not have. An operator declares them as
/// JSON with `fieldpost environment templates`; members with a default may be omitted.
package struct TemplateDeclarations: Codable, Equatable, Sendable {
    /// A choice with its reference in the back end, and the choices below it.
    package struct Node: Codable, Equatable, Sendable {
        package var referenceId: String
        package var title: String
        package var children: [Node] = []

        package init(referenceId: String, title: String, children: [Node] = []) {
            self.referenceId = referenceId
            self.title = title
            self.children = children
        }
    }

    /// A list or tree of choices.
    package struct List: Codable, Equatable, Sendable {
        package var name: String
        package var nodes: [Node]

        package init(name: String, nodes: [Node]) {
            self.name = name
            self.nodes = nodes
        }

        /// All nodes, each after its parent.
        var allNodes: [Node] {
            func all(_ nodes: [Node]) -> [Node] { nodes.flatMap { [$0] + all($0.children) } }
            return all(nodes)
        }
    }

    /// A choice that an entry needs.
    package struct Context: Codable, Equatable, Sendable {
        /// The displayed name. The same name refers to the same field in every template.
        package var name: String
        /// The source of the choices: one of `lists`, or a list of the back end.
        package var list: String
        /// The field of the back end's record that stores the choice; `nil` for a choice that only narrows down later
        /// ones.
        package var field: String?
        package var required = true
        /// References of preselected choices.
        package var preselected: [String] = []
        package var visible = true
        package var readOnly = false

        package init(
            name: String, list: String, field: String? = nil, required: Bool = true, preselected: [String] = [],
            visible: Bool = true, readOnly: Bool = false
        ) {
            self.name = name
            self.list = list
            self.field = field
            self.required = required
            self.preselected = preselected
            self.visible = visible
            self.readOnly = readOnly
        }

        /// Whether people cannot change the preselected choices.
        var isFixed: Bool { readOnly || !visible }
    }

    /// A kind of time entry.
    package struct Template: Codable, Equatable, Sendable {
        /// The permanent identifier: lower-case letters, digits and hyphens.
        package var key: String
        package var name: String
        package var type: String
        /// In the order in which choices are made.
        package var contexts: [Context]

        package init(key: String, name: String, type: String, contexts: [Context]) {
            self.key = key
            self.name = name
            self.type = type
            self.contexts = contexts
        }
    }

    package var lists: [List] = []
    package var templates: [Template]

    package init(lists: [List] = [], templates: [Template]) {
        self.lists = lists
        self.templates = templates
    }

    func list(named name: String) -> List? { lists.first { $0.name == name } }
}

// MARK: Reading

private struct AnyKey: CodingKey {
    let stringValue: String
    let intValue: Int? = nil
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension Decoder {
    /// - Throws: `DecodingError` if there is an unknown key: a misspelt key would otherwise be ignored.
    fileprivate func check<Key: CodingKey & CaseIterable>(_: Key.Type) throws {
        let allowed = Set(Key.allCases.map(\.stringValue))
        for key in try container(keyedBy: AnyKey.self).allKeys where !allowed.contains(key.stringValue) {
            let reason = "unknown key '\(key.stringValue)'; allowed: \(allowed.sorted().joined(separator: ", "))"
            throw DecodingError.dataCorrupted(DecodingError.Context(codingPath: codingPath, debugDescription: reason))
        }
    }
}

extension TemplateDeclarations {
    private enum CodingKeys: CodingKey, CaseIterable { case lists, templates }

    package init(from decoder: any Decoder) throws {
        try decoder.check(CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        lists = try container.decodeIfPresent([List].self, forKey: .lists) ?? []
        templates = try container.decode([Template].self, forKey: .templates)
    }
}

extension TemplateDeclarations.Node {
    private enum CodingKeys: CodingKey, CaseIterable { case referenceId, title, children }

    package init(from decoder: any Decoder) throws {
        try decoder.check(CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        referenceId = try container.decode(String.self, forKey: .referenceId)
        title = try container.decodeIfPresent(String.self, forKey: .title) ?? referenceId
        children = try container.decodeIfPresent([Self].self, forKey: .children) ?? []
    }
}

extension TemplateDeclarations.List {
    private enum CodingKeys: CodingKey, CaseIterable { case name, nodes }

    package init(from decoder: any Decoder) throws {
        try decoder.check(CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        nodes = try container.decode([TemplateDeclarations.Node].self, forKey: .nodes)
    }
}

extension TemplateDeclarations.Context {
    private enum CodingKeys: CodingKey, CaseIterable {
        case name, list, field, required, preselected, visible, readOnly
    }

    package init(from decoder: any Decoder) throws {
        try decoder.check(CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        list = try container.decode(String.self, forKey: .list)
        field = try container.decodeIfPresent(String.self, forKey: .field)
        required = try container.decodeIfPresent(Bool.self, forKey: .required) ?? true
        preselected = try container.decodeIfPresent([String].self, forKey: .preselected) ?? []
        visible = try container.decodeIfPresent(Bool.self, forKey: .visible) ?? true
        readOnly = try container.decodeIfPresent(Bool.self, forKey: .readOnly) ?? false
    }
}

extension TemplateDeclarations.Template {
    private enum CodingKeys: CodingKey, CaseIterable { case key, name, type, contexts }

    package init(from decoder: any Decoder) throws {
        try decoder.check(CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        key = try container.decode(String.self, forKey: .key)
        name = try container.decode(String.self, forKey: .name)
        type = try container.decode(String.self, forKey: .type)
        contexts = try container.decode([TemplateDeclarations.Context].self, forKey: .contexts)
    }
}
