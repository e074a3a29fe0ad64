package import FoundationEssentials
internal import Glibc

/// The ids and content hashes of a tree's nodes, ordered by the bytes of the ids, from which the differences between
/// two trees are computed.
package struct NodeDigests: Equatable, Sendable {
    /// 16 bytes of the id and 16 of the hash, for each node.
    package let bytes: [UInt8]

    package static let length = 32
    private static let idLength = 16

    package init(bytes: [UInt8]) { self.bytes = bytes }

    package var count: Int { bytes.count / Self.length }

    package var ids: [UUID] { (0..<count).map { id($0) } }

    /// The differences between two trees.
    struct Difference {
        var put: [(id: UUID, hash: UUID)] = []
        var gone: [UUID] = []
        /// Whether the content of an existing node has changed.
        var hasChanged = false

        var isAdditive: Bool { gone.isEmpty && !hasChanged }
        var count: Int { put.count + gone.count }
    }

    /// Returns the changes from this tree to `new`.
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
