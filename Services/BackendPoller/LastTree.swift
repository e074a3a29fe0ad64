import Catalogues
import FoundationEssentials
import Model
import Synchronization

/// The tree of the nodes that were read last: mostly the next person may report on the same, and then it is not put
/// together, hashed and sorted once more.
final class LastTree: Sendable {
    private let last = Mutex<(nodes: [Identified<ReportingTreeNode>], tree: NodeTree)?>(nil)

    func tree(of nodes: [Identified<ReportingTreeNode>]) -> NodeTree {
        if let known = last.withLock({ $0 }), known.nodes == nodes { return known.tree }
        let tree = NodeTree(nodes)
        last.withLock { $0 = (nodes, tree) }
        return tree
    }
}
