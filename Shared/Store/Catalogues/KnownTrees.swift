import FoundationEssentials

/// Trees that were read, by their digests: what a catalogue comes to hold in one run is what it goes on from in the
/// next. A digest stands for what is in the tree, so what is remembered never has to be forgotten.
struct KnownTrees {
    /// Bytes remembered; then all are forgotten. Those of 5,000 catalogues of 34 nodes are 5.4 million.
    static let byteCountMax = 8_000_000

    private var trees: [UUID: NodeDigests] = [:]
    private(set) var byteCount = 0

    subscript(digest: UUID) -> NodeDigests? { trees[digest] }

    mutating func remember(_ tree: NodeDigests, _ digest: UUID) {
        guard tree.bytes.count <= Self.byteCountMax, trees[digest] == nil else { return }
        if byteCount + tree.bytes.count > Self.byteCountMax { (trees, byteCount) = ([:], 0) }
        trees[digest] = tree
        byteCount += tree.bytes.count
    }
}
