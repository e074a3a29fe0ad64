internal import Crypto
internal import Essentials
package import FoundationEssentials
package import Model
internal import Postgres

/// The nodes a person may report on, in a form in which two are the same when their digests are: whatever the order in
/// which the back end told them.
package struct NodeTree: Equatable, Sendable {
    /// Names the whole of it.
    package let digest: UUID
    /// Each node's id and a hash of what it says, in the order of the ids' bytes.
    package let digests: NodeDigests

    /// - Parameter nodes: Of several with one id the first counts.
    package init(_ nodes: [Identified<ReportingTreeNode>]) {
        var known: Set<UUID> = []
        var pairs: [(id: SortedID, hash: UUID)] = []
        pairs.reserveCapacity(nodes.count)
        var hash = NodeHash()
        for node in nodes where known.insert(node.id).inserted {
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

    /// The nodes' fields by id, as one JSON object.
    static func json(of nodes: [Identified<ReportingTreeNode>]) throws -> JSONBytes {
        let encoder = JSONEncoder()
        // PostgreSQL keeps the last of two members with one name.
        let members = try nodes.reversed().map {
            "\"\($0.id.text)\":" + String(decoding: try encoder.encode($0.fields), as: UTF8.self)
        }
        return JSONBytes("{" + members.joined(separator: ",") + "}")
    }
}

/// An id with its bytes as a number, which is compared at once.
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

/// SHA-256, cut to the length of an id, of bytes put together before: one after the other, each text and each list with
/// its length before it.
private struct NodeHash {
    private var bytes: [UInt8] = []

    /// The same for nodes that say the same.
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

    /// What was added is forgotten.
    mutating func finish() -> UUID {
        defer { bytes.removeAll(keepingCapacity: true) }
        return unsafe SHA256.hash(data: bytes).withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
