internal import Crypto
package import FoundationEssentials
package import Model
package import Postgres

/// The nodes a person may report on, in a form in which two are the same when their digests are: whatever the order in
/// which the back end told them.
package struct NodeTree: Equatable, Sendable {
    /// Names the whole of it.
    package let digest: UUID
    /// The nodes' ids, in the order of their bytes.
    package let ids: [UUID]
    /// What each of them says, in the same order.
    package let hashes: [UUID]

    /// - Parameter nodes: Of several with one id the first counts.
    package init(_ nodes: [Identified<ReportingTreeNode>]) {
        var hashed: [UUID: UUID] = Dictionary(minimumCapacity: nodes.count)
        for node in nodes where hashed[node.id] == nil { hashed[node.id] = node.fields.hash }
        let sorted = hashed.sorted { $0.key < $1.key }
        ids = sorted.map(\.key)
        hashes = sorted.map(\.value)
        var hash = NodeHash()
        for (id, fields) in sorted {
            hash.add(id)
            hash.add(fields)
        }
        digest = hash.finish()
    }

    /// The nodes' fields by id, as one JSON object.
    package static func json(of nodes: [Identified<ReportingTreeNode>]) throws -> JSONBytes {
        let encoder = JSONEncoder()
        var fields: [UUID: String] = Dictionary(minimumCapacity: nodes.count)
        for node in nodes where fields[node.id] == nil {
            fields[node.id] = String(decoding: try encoder.encode(node.fields), as: UTF8.self)
        }
        return JSONBytes("{" + fields.map { "\"\($0.text)\":\($1)" }.joined(separator: ",") + "}")
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
