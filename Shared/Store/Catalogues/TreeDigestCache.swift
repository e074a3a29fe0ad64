import FoundationEssentials

/// A cache of trees by digest: the tree that a catalogue gets in one run is the starting point of the next. A digest
/// determines the tree, so entries never become invalid.
struct TreeDigestCache {
    /// Maximum size in bytes; beyond it, the cache is cleared. The trees of 5,000 catalogues with 34 nodes have 5.4
    /// million bytes.
    static let byteCountMax = 8_000_000

    private var trees: [UUID: NodeDigests] = [:]
    private(set) var byteCount = 0

    subscript(digest: UUID) -> NodeDigests? { trees[digest] }

    mutating func insert(_ tree: NodeDigests, _ digest: UUID) {
        guard tree.bytes.count <= Self.byteCountMax, trees[digest] == nil else { return }
        if byteCount + tree.bytes.count > Self.byteCountMax { (trees, byteCount) = ([:], 0) }
        trees[digest] = tree
        byteCount += tree.bytes.count
    }
}
