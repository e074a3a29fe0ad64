import Essentials
public import FoundationEssentials

/// Fields of a `ReportingTreeNode` object: one thing time can be reported on, such as a project or an activity.
///
/// A tree is stored flat, one object per node that names its parent, so that no object outgrows the limit of a field
/// list and a new node is one small change.
///
/// The nodes of a person's catalogue can be chosen. One in a personal realm cannot, any more: it is there for the
/// entries that select it, so that they can say what they are about; what it names may be gone.
public struct ReportingTreeNode: Codable, Equatable, Sendable {
    /// The node's id in the back end; roots have none.
    public var referenceId: String?
    /// The node's name.
    public var name: String
    /// What a person sees; ``name`` when absent.
    public var title: String?
    /// The node above; absent on a root.
    public var parent: UUID?
    /// Whether ``dependencies`` restrict when the node can be selected.
    public var hasDependencies: Bool
    /// Nodes of other trees; with ``hasDependencies``, one of them must be selected before this one.
    public var dependencies: [UUID]

    /// A node.
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

    /// Reads the fields; without `hasDependencies` and `dependencies` the node has none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        referenceId = try container.decodeIfPresent(String.self, forKey: .referenceId)
        name = try container.decode(String.self, forKey: .name)
        title = try container.decodeIfPresent(String.self, forKey: .title)
        parent = try container.decodeIfPresent(UUID.self, forKey: .parent)
        hasDependencies = try container.decodeIfPresent(Bool.self, forKey: .hasDependencies) ?? false
        dependencies = try container.decodeIfPresent([UUID].self, forKey: .dependencies) ?? []
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
