/// What the people of an environment can register, as its operator declares it: templates, and lists of choices that
/// the back end does not list. `fieldpost environment templates` stores it, as JSON; whatever has a default may be
/// left out.
package struct TemplateDeclarations: Codable, Equatable, Sendable {
    /// A choice. `referenceId` is what the back end calls it; below it there may be others.
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

    /// A list of choices, or a tree of them.
    package struct List: Codable, Equatable, Sendable {
        package var name: String
        package var nodes: [Node]

        package init(name: String, nodes: [Node]) {
            self.name = name
            self.nodes = nodes
        }

        /// All nodes, each after the one it is below.
        var allNodes: [Node] {
            func all(_ nodes: [Node]) -> [Node] { nodes.flatMap { [$0] + all($0.children) } }
            return all(nodes)
        }
    }

    /// One choice that is made for an entry.
    package struct Context: Codable, Equatable, Sendable {
        /// What a person reads. The same name means the same field in every template.
        package var name: String
        /// Where its choices come from: one of `lists`, or of the back end's.
        package var list: String
        /// The field of the back end's record that holds what was chosen; `nil` for a choice that only narrows down
        /// those after it.
        package var field: String?
        package var required = true
        /// References of choices that are made already.
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

        /// Nobody can change what is preselected.
        var isFixed: Bool { readOnly || !visible }
    }

    /// A sort of time.
    package struct Template: Codable, Equatable, Sendable {
        /// What it is known by, for ever: small letters, digits and hyphens.
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
    /// - Throws: When there is a key that nobody reads: it is misspelt, and would be taken for absent.
    fileprivate func check<Key: CodingKey & CaseIterable>(_: Key.Type) throws {
        let known = Set(Key.allCases.map(\.stringValue))
        for key in try container(keyedBy: AnyKey.self).allKeys where !known.contains(key.stringValue) {
            let reason = "there is no '\(key.stringValue)' here; there are \(known.sorted().joined(separator: ", "))"
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
