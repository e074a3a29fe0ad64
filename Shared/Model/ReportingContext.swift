import Essentials
public import FoundationEssentials

/// Fields of a `ReportingContext` object: one choice the author of an entry makes, such as "Project".
public struct ReportingContext: Codable, Hashable, Sendable {
    /// One way to show the context's nodes: either all below a root, or a list of single ones such as suggestions.
    public struct Section: Codable, Hashable, Sendable {
        /// The section's heading.
        public var name: String
        /// How many nodes to show before "more".
        public var showCount: Int?
        /// Single nodes at any level, in the order to show them.
        public var items: [UUID]?
        /// The node whose descendants are shown; the root itself cannot be selected.
        public var rootNode: UUID?

        enum CodingKeys: String, CodingKey, ClosedNames {
            case name, showCount, items, rootNode
        }

        /// A section; give either `items` or `rootNode`.
        public init(name: String, showCount: Int? = nil, items: [UUID]? = nil, rootNode: UUID? = nil) {
            self.name = name
            self.showCount = showCount
            self.items = items
            self.rootNode = rootNode
        }
    }

    /// The context's name; a person reads it in messages about a missing choice.
    public var name: String
    /// Whether an entry needs a selection for this context.
    public var required: Bool
    /// The ways to show the nodes. A node can be selected when any section shows it.
    public var sections: [Section]
    /// Nodes that count as selected when the entry has no selection for this context.
    public var preselected: [UUID]
    /// Whether the device shows the context.
    public var visible: Bool
    /// Whether the device shows the context without letting the person change it.
    public var readOnly: Bool

    /// A context.
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

    /// Whether nobody chooses: the preselected nodes, if any, are selected.
    public var isFixed: Bool { readOnly || !visible }

    /// What is wrong with it, for whoever writes one; what is stored is read whatever it says.
    package var objection: String? {
        for (index, section) in sections.enumerated() {
            if section.items != nil, section.rootNode != nil {
                return "'sections[\(index)]' has 'items' and 'rootNode'; give one of them"
            }
            if let count = section.showCount, !(0...Int(Int32.max)).contains(count) {
                return "'sections[\(index)].showCount' must be from 0 to \(Int32.max)"
            }
        }
        return DisplayName.objection(to: name, of: "name")
    }

    /// Reads the fields; a context is visible, changeable, not required and has nothing preselected unless it says so.
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
