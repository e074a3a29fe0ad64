import Essentials
public import FoundationEssentials

/// Fields of a `ReportingTreeNode` object: an item that time can be reported on, such as a project or an activity.
///
/// A tree is stored flat, one object per node that names its parent: the tree's size does not matter for the limit of
/// an object's fields, and a new node is one small change.
///
/// Nodes of a person's catalogue can be selected. A node in a personal realm cannot: it is stored for display by
/// existing entries that select it; objects that it refers to may have been deleted.
public struct ReportingTreeNode: Codable, Equatable, Sendable {
    /// The node's id in the back end; roots have none.
    public var referenceId: String?
    /// The node's name.
    public var name: String
    /// The display name; ``name`` if absent.
    public var title: String?
    /// The parent's id; absent for a root.
    public var parent: UUID?
    /// Whether ``dependencies`` restrict the selection of the node; false if absent.
    public var hasDependencies: Bool
    /// Nodes of other trees; with ``hasDependencies``, one of them must be selected before this node. None if absent.
    public var dependencies: [UUID]

    /// Creates the fields of a node.
    public init(
        referenceId: String? = nil, name: String, title: String? = nil, parent: UUID? = nil,
        hasDependencies: Bool = false, dependencies: [UUID] = []
    ) {
        self.referenceId = referenceId
        self.name = name
        self.title = title
        self.parent = parent
        self.hasDependencies = hasDependencies
        self.dependencies = dependencies
    }
}

extension ReportingTreeNode: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, title, referenceId, parent, hasDependencies, dependencies
    }

    package var objection: String? { DisplayName.objection(to: name, of: "name") }

    /// The row of ``Kind/reportingTreeNode``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user, .catalogue])
}
