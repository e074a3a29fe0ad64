import Algorithms
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Writes the objects of a ``TreeFile`` into one realm, unless they are stored with the same fields.
struct TreeImport {
    /// The numbers of written and unchanged objects.
    struct Counts: Encodable {
        var nodes = 0
        var contexts = 0
        var templates = 0
        var unchanged = 0

        var written: Int { nodes + contexts + templates }
    }

    private struct Write {
        let key: ObjectKey
        let fields: CanonicalJSON
    }

    let file: TreeFile
    let realm: Int32
    let environment: EnvironmentID
    /// The realm of the nodes to which a person's contexts refer; `nil` for another realm, or without a catalogue.
    let catalogue: Int32?

    /// Maximum number of objects that are read by one statement, or written in one transaction.
    static let batchCountMax = 500

    private(set) var counts = Counts()
    private var writes: [Write] = []

    init(_ file: TreeFile, realm: Int32, catalogue: Int32?, in environment: EnvironmentID) {
        (self.file, self.realm, self.catalogue, self.environment) = (file, realm, catalogue, environment)
    }

    /// Compares the file with the stored objects, and collects the writes.
    ///
    /// - Returns: The problems; if there are any, nothing is written.
    mutating func check(on connection: inout Connection) throws -> TreeFileProblems {
        let (nodes, contexts) = file.externalReferences
        var realms = [realm]
        if let catalogue { realms.append(catalogue) }
        let keys =
            realms.flatMap { realm in nodes.map { ObjectKey(realm: realm, kind: .reportingTreeNode, id: $0) } }
            + contexts.map { ObjectKey(realm: realm, kind: .reportingContext, id: $0) }
        let stored = try load(keys, on: &connection).values.filter { !$0.isDeleted }
        var problems = file.problems(
            stored: (
                Set(stored.filter { $0.key.kind == .reportingTreeNode }.map(\.key.id)),
                Set(stored.filter { $0.key.kind == .reportingContext }.map(\.key.id))
            ))
        (counts, writes) = (Counts(), [])
        try compare(file.nodes, .reportingTreeNode, \.nodes, &problems, on: &connection)
        try compare(file.contexts, .reportingContext, \.contexts, &problems, on: &connection)
        try compare(file.templates, .reportingTemplate, \.templates, &problems, on: &connection)
        return problems
    }

    private mutating func compare<Fields: Codable & Equatable>(
        _ items: [Identified<Fields>], _ kind: Kind, _ count: WritableKeyPath<Counts, Int>,
        _ problems: inout TreeFileProblems, on connection: inout Connection
    ) throws {
        let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
        let stored = try load(
            items.map { ObjectKey(realm: realm, kind: kind, id: $0.id) }, on: &connection)
        for item in items {
            let key = ObjectKey(realm: realm, kind: kind, id: item.id)
            if let fields = stored[key]?.fields,
                (try? decoder.decode(Fields.self, from: Data(fields.bytes))) == item.fields
            {
                counts.unchanged += 1
                continue
            }
            let fields = Array(try encoder.encode(item.fields))
            if fields.count > Kind.fieldsBytesMax {
                problems.add("\(kind.rawValue) \(item.id.text): the fields have more than \(Kind.fieldsBytesMax) bytes")
            }
            counts[keyPath: count] += 1
            do throws(JSONError) {
                writes.append(Write(key: key, fields: try CanonicalJSON(fields)))
            } catch {
                problems.add("\(kind.rawValue) \(item.id.text): \(error)")
            }
        }
    }

    private func load(
        _ keys: [ObjectKey], on connection: inout Connection
    ) throws -> [ObjectKey: RealmObject] {
        var loaded: [ObjectKey: RealmObject] = [:]
        for page in keys.chunks(ofCount: Self.batchCountMax) {
            let objects = try RealmObject.byKey(try connection.run(RealmObject.load(page, in: environment)))
            loaded.merge(objects) { first, _ in first }
        }
        return loaded
    }

    /// Writes the collected objects as edits: the poller only removes objects that Fieldpost itself created.
    ///
    /// - Parameters:
    ///   - audit: Committed with the first batch, so that an interrupted import is recorded.
    ///   - progress: Called after each batch with the number of written objects and their total.
    func write(
        audit: Statement, on connection: inout Connection, progress: (_ done: Int, _ of: Int) -> Void
    ) throws {
        for page in writes.chunks(ofCount: Self.batchCountMax) {
            var batch = WriteBatch(environment: environment)
            for write in page { batch.put(write.key, write.fields, decision: 0, isEdit: true) }
            if page.startIndex == writes.startIndex { batch.append(audit) }
            _ = try batch.commit(on: &connection)
            progress(page.endIndex, writes.count)
        }
    }
}
