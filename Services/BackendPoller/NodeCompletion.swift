import BackendProtocol
import Catalogues
import FoundationEssentials
import Model
import Postgres

/// Completes a person's nodes with the stored ones while rows of the back end's lists are unreadable.
struct NodeCompletion {
    /// The last result, which usually applies to the next person too.
    private var last: (found: UUID, stored: UUID, nodes: [Identified<ReportingTreeNode>], tree: NodeTree)?

    /// - Parameter tree: The tree of the nodes of `data`.
    /// - Returns: `data` with all nodes that the person had, and their tree.
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
        var storedNodes: [UUID: ReportingTreeNode] = [:]
        for (id, fields) in try connection.run(AudienceStore.nodes(of: stored, in: environment)).decode(
            UUID.self, CanonicalJSON.self)
        {
            storedNodes[id] = try decoder.decode(ReportingTreeNode.self, from: Data(fields.bytes))
        }
        data.nodes = PollRule.nodes(data.nodes, keeping: storedNodes)
        let completed = NodeTree(data.nodes)
        last = (tree.digest, stored, data.nodes, completed)
        return (data, completed)
    }
}
