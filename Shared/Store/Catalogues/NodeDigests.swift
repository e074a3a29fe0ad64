package import FoundationEssentials
internal import Glibc

/// The nodes of a tree, each as its id and a hash of what it says, in the order of the ids' bytes: enough to tell what
/// differs between two trees.
package struct NodeDigests: Equatable, Sendable {
    /// 16 bytes of the id and 16 of the hash, for each node.
    package let bytes: [UInt8]

    package static let length = 32
    private static let idLength = 16

    package init(bytes: [UInt8]) { self.bytes = bytes }

    package var count: Int { bytes.count / Self.length }

    package var ids: [UUID] { (0..<count).map { id($0) } }

    /// What becomes of nodes.
    struct Difference {
        var put: [(id: UUID, hash: UUID)] = []
        var gone: [UUID] = []
        /// Whether a node that was there says something else.
        var hasChanged = false

        var isGain: Bool { gone.isEmpty && !hasChanged }
        var count: Int { put.count + gone.count }
    }

    /// What has to be done to a catalogue that holds this, so that it holds `new`.
    func difference(to new: NodeDigests) -> Difference {
        var difference = Difference()
        var (i, j) = (0, 0)
        while i < count || j < new.count {
            let order = i == count ? 1 : j == new.count ? -1 : compare(i, new, j, length: Self.idLength)
            if order < 0 {
                difference.gone.append(id(i))
                i += 1
            } else if order > 0 {
                difference.put.append((new.id(j), new.hash(j)))
                j += 1
            } else {
                if compare(i, new, j, length: Self.length) != 0 {
                    difference.put.append((new.id(j), new.hash(j)))
                    difference.hasChanged = true
                }
                (i, j) = (i + 1, j + 1)
            }
        }
        return difference
    }

    private func id(_ index: Int) -> UUID { value(at: index * Self.length) }

    private func hash(_ index: Int) -> UUID { value(at: index * Self.length + Self.idLength) }

    private func value(at offset: Int) -> UUID {
        unsafe bytes.withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(fromByteOffset: offset, as: uuid_t.self)) }
    }

    private func compare(_ index: Int, _ other: NodeDigests, _ otherIndex: Int, length: Int) -> Int32 {
        let (first, second) = (index * Self.length, otherIndex * Self.length)
        return unsafe bytes.withUnsafeBytes { own in
            unsafe other.bytes.withUnsafeBytes { other in
                guard let own = own.baseAddress, let other = other.baseAddress else { return 0 }
                return unsafe memcmp(own + first, other + second, length)
            }
        }
    }
}
