import BackendProtocol
import Catalogues
import FoundationEssentials
import Model
import Postgres

/// Completes what was read while rows of the back end's lists cannot be read: the nodes that a person had before stay.
struct KeptNodes {
    /// The last result, which is mostly the next person's too.
    private var last: (found: UUID, stored: UUID, nodes: [Identified<ReportingTreeNode>], tree: NodeTree)?

    /// - Parameter tree: The one that the nodes of `data` make.
    /// - Returns: `data` with all nodes that the person had, and the tree that these make.
    mutating func complete(
        _ data: ReportingData, _ tree: NodeTree, of person: String, in environment: EnvironmentID,
        _ decoder: JSONDecoder, _ connection: inout Connection
    ) throws -> (ReportingData, NodeTree) {
        let rows = try connection.run(AudienceStore.tree(of: person, in: environment))
        guard let stored = try rows.first?.decode(UUID.self), stored != tree.digest else { return (data, tree) }
        var data = data
        if let last, last.found == tree.digest, last.stored == stored {
            data.nodes = last.nodes
            return (data, last.tree)
        }
        var known: [UUID: ReportingTreeNode] = [:]
        for (id, fields) in try connection.run(AudienceStore.nodes(of: stored, in: environment)).decode(
            UUID.self, CanonicalJSON.self)
        {
            known[id] = try decoder.decode(ReportingTreeNode.self, from: Data(fields.bytes))
        }
        data.nodes = PollRule.nodes(data.nodes, keeping: known)
        let completed = NodeTree(data.nodes)
        last = (tree.digest, stored, data.nodes, completed)
        return (data, completed)
    }
}
