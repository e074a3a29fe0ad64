import DeviceClient
import Essentials
import FoundationEssentials
import Model
import PowerSyncModel

/// The SQLite database of a simulated client of the PowerSync protocol: buckets, displayed rows, local writes, and the
/// queue of entries, `ps_crud`.
struct PowerSyncDatabase: Sendable {
    /// A local write.
    struct Entry: Sendable {
        /// The number by `AUTOINCREMENT`.
        let number: Int64
        let realm: RealmPath
        /// With only the fields that the entry contains.
        let mutation: Mutation
        /// The entry as the SDK stores it.
        let json: [UInt8]
    }

    private typealias Row = BucketModel.Row

    let clientID: UUID
    private(set) var model = BucketModel()
    /// The oldest entry is first.
    private(set) var queue: [Entry] = []
    /// The highest number of an entry, and of one that was sent.
    private(set) var (last, sent): (Int64, Int64) = (0, 0)
    /// Rows that were written since the last displayed checkpoint; `nil` is a deleted row.
    private var written: [BucketModel.Row: [UInt8]?] = [:]

    init(clientID: UUID) {
        self.clientID = clientID
    }

    // MARK: Rows

    /// The objects of the tables, by realm. A realm without rows is present if it has a bucket.
    var contents: [RealmPath: RealmContent] {
        var contents: [RealmPath: RealmContent] = [:]
        for name in model.buckets.keys { if let path = Self.realm(ofBucket: name) { contents[path] = [:] } }
        for (row, data) in model.rows where written[row] == nil { Self.add(row, Array(data.utf8), to: &contents) }
        for (row, fields) in written { if let fields { Self.add(row, fields, to: &contents) } }
        return contents
    }

    private static func add(_ row: Row, _ fields: [UInt8], to contents: inout [RealmPath: RealmContent]) {
        guard let kind = Kind(named: row.type), let id = UUID(uuidString: String(row.id.prefix(idLength))),
            let path = RealmPath(String(row.id.dropFirst(idLength)))
        else { return }
        contents[path, default: [:]][ObjectID(kind: kind, id: id)] = DeviceObject(position: 0, fields: fields)
    }

    /// Length of the object's id at the start of a row's id; the rest is its realm.
    private static let idLength = 36

    /// The realms of the announced buckets.
    var announced: Set<RealmPath> { Set(model.names.compactMap(Self.realm)) }

    private static func realm(ofBucket name: String) -> RealmPath? {
        name.firstIndex(of: ":").flatMap { RealmPath(String(name[name.index(after: $0)...])) }
    }

    private func fields(_ row: Row) -> [UInt8]? {
        if let fields = written[row] { return fields }
        return model.rows[row].map { Array($0.utf8) }
    }

    // MARK: The stream

    /// Begins a connection.
    ///
    /// - Returns: The body of `POST /sync/stream`.
    mutating func syncRequest() -> [UInt8] {
        let buckets = model.begin().map { "{\"name\":\"\($0["name"] ?? "")\",\"after\":\"\($0["after"] ?? "")\"}" }
        return Array(
            ("{\"buckets\":[\(buckets.joined(separator: ","))],\"include_checksum\":true,\"raw_data\":true,"
                + "\"binary_data\":true,\"client_id\":\"\(clientID.text)\",\"parameters\":null,"
                + "\"streams\":{\"include_defaults\":true,\"subscriptions\":[]}}").utf8)
    }

    mutating func apply(_ line: [UInt8]) throws { try displaying { try $0.apply(line) } }

    /// Removes local writes after a displayed checkpoint, which contains their results.
    private mutating func displaying(_ body: (inout BucketModel) throws -> Void) rethrows {
        let count = model.completedCount
        try body(&model)
        if model.completedCount > count { written = [:] }
    }

    // MARK: Local writes

    /// Writes a row as an app does with SQL, and queues an entry. An update or a deletion of a missing row has no
    /// effect.
    ///
    /// - Parameter gap: The number of preceding entries that the app discarded with its queue.
    mutating func write(_ mutation: Mutation, in realm: RealmPath, gap: Int64) {
        let row = Row(type: mutation.kind.rawValue, id: mutation.id.text + realm.description)
        let old = fields(row).flatMap { try? JSONObject($0) }
        let new = mutation.fields.flatMap { try? JSONObject($0) }
        let (operation, changed): (String, [UInt8]?)
        switch mutation.operation {
        case .put:
            guard let new else { return }
            (operation, changed) = ("PUT", new.filtered { !new.isNull($0) })
            written.updateValue(changed, forKey: row)
        case .patch:
            guard let new, let old else { return }
            (operation, changed) = ("PATCH", new.filtered { !old.hasSameColumn($0, as: new) })
            written.updateValue(old.merging(new), forKey: row)
        case .delete:
            guard old != nil else { return }
            (operation, changed) = ("DELETE", nil)
            written.updateValue(nil, forKey: row)
        }
        last += 1 + gap
        let data = changed.flatMap { try? JSONObject($0) }.map { object in object.mapValues { object.column($0) } }
        queue.append(
            Entry(
                number: last, realm: realm,
                mutation: Mutation(
                    operation: mutation.operation, kind: mutation.kind, id: mutation.id, fields: changed),
                json: Array(
                    ("{\"op_id\":\(last),\"tx_id\":\(last),\"op\":\"\(operation)\",\"type\":\"\(row.type)\","
                        + "\"id\":\"\(row.id)\",\"data\":").utf8) + (data ?? Array("null".utf8)) + Array("}".utf8)))
        model.write()
    }

    // MARK: Uploads

    /// Returns the body of `POST /v1/uploads` with the oldest entries, and records that they are sent.
    mutating func uploadRequest(countMax: Int) -> (body: [UInt8], entries: [Entry]) {
        let entries = Array(queue.prefix(countMax))
        sent = max(sent, entries.last?.number ?? 0)
        let body =
            Array("{\"clientId\":\"\(clientID.text)\",\"entries\":[".utf8)
            + Array(entries.map(\.json).joined(separator: Array(",".utf8))) + Array("]}".utf8)
        return (body, entries)
    }

    /// Removes entries with their results.
    mutating func complete(_ entries: [Entry]) {
        queue.removeFirst(entries.count)
        model.waitingCount = queue.count
    }

    /// Whether the queue is empty, and no write checkpoint was requested since.
    var needsWriteCheckpoint: Bool { queue.isEmpty && model.awaited == .max }

    /// Waits for a write checkpoint that was requested when the queue was empty.
    mutating func expect(writeCheckpoint number: Int64) {
        displaying { model in
            model.awaited = number
            model.displayIfPossible()
        }
    }
}

extension JSONObject {
    fileprivate func isNull(_ name: String) -> Bool { value(of: name)?.elementsEqual("null".utf8) ?? true }

    /// Absent and null are one value of a column.
    fileprivate func hasSameColumn(_ name: String, as other: JSONObject) -> Bool {
        if isNull(name) || other.isNull(name) { return isNull(name) && other.isNull(name) }
        return value(of: name) == other.value(of: name)
    }

    fileprivate func filtered(_ isIncluded: (String) -> Bool) -> [UInt8] {
        Self.bytes(of: members.filter { isIncluded($0.key) }.map { ($0.key, bytes[$0.value]) })
    }

    /// The value of an SQLite column: 1 and 0 for booleans, text for lists and objects.
    fileprivate func column(_ member: JSONMember) -> ArraySlice<UInt8> {
        let value = bytes[member.value]
        if value.elementsEqual("true".utf8) { return Array("1".utf8)[...] }
        if value.elementsEqual("false".utf8) { return Array("0".utf8)[...] }
        guard value.first == UInt8(ascii: "{") || value.first == UInt8(ascii: "[") else { return value }
        var text: [UInt8] = []
        JSONText.append(String(decoding: value, as: UTF8.self), to: &text)
        return text[...]
    }
}
