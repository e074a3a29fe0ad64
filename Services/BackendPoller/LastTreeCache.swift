import Catalogues
import FoundationEssentials
import Model
import Synchronization

/// A cache of the last tree of nodes: people with the same permissions have the same tree, which is then hashed and
/// sorted only once.
final class LastTreeCache: Sendable {
    private let last = Mutex<(nodes: [Identified<ReportingTreeNode>], tree: NodeTree)?>(nil)

    func tree(of nodes: [Identified<ReportingTreeNode>]) -> NodeTree {
        if let cached = last.withLock({ $0 }), cached.nodes == nodes { return cached.tree }
        let tree = NodeTree(nodes)
        last.withLock { $0 = (nodes, tree) }
        return tree
    }
}
