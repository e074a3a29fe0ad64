import Essentials
public import FoundationEssentials

/// Fields of a `ReportingContext` object: a choice that the author of an entry makes, such as "Project".
public struct ReportingContext: Codable, Hashable, Sendable {
    /// A group of nodes for display: all descendants of a root, or a list of individual nodes such as suggestions.
    public struct Section: Codable, Hashable, Sendable {
        /// The section's heading.
        public var name: String
        /// The number of nodes to display before "more".
        public var showCount: Int?
        /// Individual nodes at any level, in display order.
        public var items: [UUID]?
        /// The node whose descendants are shown; the root itself cannot be selected.
        public var rootNode: UUID?

        enum CodingKeys: String, CodingKey, ClosedCodingKeys {
            case name, showCount, items, rootNode
        }

        /// Creates a section; pass either `items` or `rootNode`.
        public init(name: String, showCount: Int? = nil, items: [UUID]? = nil, rootNode: UUID? = nil) {
            self.name = name
            self.showCount = showCount
            self.items = items
            self.rootNode = rootNode
        }
    }

    /// The context's name, which also appears in messages about a missing choice.
    public var name: String
    /// Whether an entry needs a selection for this context.
    public var required: Bool
    /// The groups of nodes. A node can be selected if any section displays it.
    public var sections: [Section]
    /// Nodes that count as selected if the entry has no selection for this context.
    public var preselected: [UUID]
    /// Whether the device shows the context.
    public var visible: Bool
    /// Whether the context is displayed but cannot be changed by the person.
    public var readOnly: Bool

    /// Creates the fields of a context.
    public init(
        name: String, required: Bool, sections: [Section] = [], preselected: [UUID] = [], visible: Bool = true,
        readOnly: Bool = false
    ) {
        self.name = name
        self.required = required
        self.sections = sections
        self.preselected = preselected
        self.visible = visible
        self.readOnly = readOnly
    }

    /// Whether the person cannot choose: the preselected nodes, if any, are selected.
    public var isFixed: Bool { readOnly || !visible }

    /// Describes the first problem for the context's author; stored contexts are decoded without this validation.
    package var objection: String? {
        for (index, section) in sections.enumerated() {
            if section.items != nil, section.rootNode != nil {
                return "'sections[\(index)]' has both 'items' and 'rootNode'; only one of them is allowed"
            }
            if let count = section.showCount, !(0...Int(Int32.max)).contains(count) {
                return "'sections[\(index)].showCount' must be from 0 to \(Int32.max)"
            }
        }
        return DisplayName.objection(to: name, of: "name")
    }

    /// Reads the fields; a context is by default visible, changeable, not required, and without preselected nodes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        required = try container.decodeIfPresent(Bool.self, forKey: .required) ?? false
        sections = try container.decodeIfPresent([Section].self, forKey: .sections) ?? []
        preselected = try container.decodeIfPresent([UUID].self, forKey: .preselected) ?? []
        visible = try container.decodeIfPresent(Bool.self, forKey: .visible) ?? true
        readOnly = try container.decodeIfPresent(Bool.self, forKey: .readOnly) ?? false
    }
}

extension ReportingContext: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, required, visible, readOnly, preselected, sections
    }

    /// The row of ``Kind/reportingContext``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user])
}
