internal import Crypto
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
        var pairs: [(id: UUID, hash: UUID)] = []
        for node in nodes where known.insert(node.id).inserted { pairs.append((node.id, node.fields.hash)) }
        pairs.sort { $0.id < $1.id }
        var hash = NodeHash()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(pairs.count * NodeDigests.length)
        for (id, fields) in pairs {
            hash.add(id)
            hash.add(fields)
            id.encode(into: &bytes)
            fields.encode(into: &bytes)
        }
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

extension ReportingTreeNode {
    /// The same for nodes that say the same.
    fileprivate var hash: UUID {
        var hash = NodeHash()
        for text in [name, title, referenceId] { hash.add(text) }
        hash.add(parent.map { [$0] } ?? [])
        hash.add(dependencies)
        hash.add(hasDependencies ? "yes" : "no")
        return hash.finish()
    }
}

/// SHA-256, cut to the length of an id; each part with its length before it.
private struct NodeHash {
    private var hash = SHA256()

    mutating func add(_ id: UUID) {
        unsafe withUnsafeBytes(of: id.uuid) { unsafe hash.update(bufferPointer: $0) }
    }

    mutating func add(_ ids: [UUID]) {
        add(count: ids.count)
        for id in ids { add(id) }
    }

    mutating func add(_ text: String?) {
        guard var text else { return add(count: -1) }
        text.withUTF8 { bytes in
            add(count: bytes.count)
            unsafe hash.update(bufferPointer: UnsafeRawBufferPointer(bytes))
        }
    }

    private mutating func add(count: Int) {
        unsafe withUnsafeBytes(of: Int64(count).littleEndian) { unsafe hash.update(bufferPointer: $0) }
    }

    mutating func finish() -> UUID {
        unsafe hash.finalize().withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
