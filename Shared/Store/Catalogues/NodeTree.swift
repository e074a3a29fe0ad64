internal import Crypto
internal import Essentials
package import FoundationEssentials
package import Model
internal import Postgres

/// The nodes a person may report on, with a digest that is independent of the back end's order.
package struct NodeTree: Equatable, Sendable {
    /// Identifies the tree: equal for equal trees.
    package let digest: UUID
    /// Each node's id and content hash, ordered by the bytes of the ids.
    package let digests: NodeDigests

    /// - Parameter nodes: The nodes in any order. Of several with one id, the first is used.
    package init(_ nodes: [Identified<ReportingTreeNode>]) {
        var ids: Set<UUID> = []
        var pairs: [(id: SortedID, hash: UUID)] = []
        pairs.reserveCapacity(nodes.count)
        var hash = NodeHash()
        for node in nodes where ids.insert(node.id).inserted {
            hash.add(node.fields)
            pairs.append((SortedID(node.id), hash.finish()))
        }
        pairs.sort { $0.id < $1.id }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(pairs.count * NodeDigests.length)
        for (id, hash) in pairs {
            id.id.encode(into: &bytes)
            hash.encode(into: &bytes)
        }
        hash.add(bytes)
        digest = hash.finish()
        digests = NodeDigests(bytes: bytes)
    }

    /// Encodes the nodes' fields by id as one JSON object.
    static func json(of nodes: [Identified<ReportingTreeNode>]) throws -> JSONBytes {
        let encoder = JSONEncoder()
        // Of two members with one name, PostgreSQL keeps the last.
        let members = try nodes.reversed().map {
            "\"\($0.id.text)\":" + String(decoding: try encoder.encode($0.fields), as: UTF8.self)
        }
        return JSONBytes("{" + members.joined(separator: ",") + "}")
    }
}

/// An id with its bytes as a number, which is faster to compare.
private struct SortedID: Comparable {
    let id: UUID
    private let number: UInt128

    init(_ id: UUID) {
        self.id = id
        let bytes = id.uuid
        number = unsafe UInt128(bigEndian: withUnsafeBytes(of: bytes) { unsafe $0.loadUnaligned(as: UInt128.self) })
    }

    static func < (a: SortedID, b: SortedID) -> Bool { a.number < b.number }
}

/// SHA-256, truncated to the length of an id, of concatenated values; texts and lists are preceded by their length.
private struct NodeHash {
    private var bytes: [UInt8] = []

    /// Adds the content of a node.
    mutating func add(_ node: ReportingTreeNode) {
        for text in [node.name, node.title, node.referenceId] { add(text) }
        add(node.parent.map { [$0] } ?? [])
        add(node.dependencies)
        add(node.hasDependencies ? "yes" : "no")
    }

    mutating func add(_ bytes: [UInt8]) { self.bytes += bytes }

    private mutating func add(_ ids: [UUID]) {
        add(count: ids.count)
        for id in ids { id.encode(into: &bytes) }
    }

    private mutating func add(_ text: String?) {
        guard let text else { return add(count: -1) }
        add(count: text.utf8.count)
        bytes += text.utf8
    }

    private mutating func add(count: Int) {
        unsafe withUnsafeBytes(of: Int64(count).littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    /// Returns the hash and resets the state.
    mutating func finish() -> UUID {
        defer { bytes.removeAll(keepingCapacity: true) }
        return unsafe SHA256.hash(data: bytes).withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
