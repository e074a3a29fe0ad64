import Essentials
import FoundationEssentials
import Model
import NIOCore
import ObjectStore
import Postgres

/// A line of objects under construction: their bytes are copied directly from PostgreSQL's response.
struct ObjectLine {
    static let objectCountMax = 500
    /// With the largest possible object added, a line stays below 256 KB. In the bucket format it is at most twice as
    /// long, because quotes are escaped again.
    static let bytesFull = 190_000

    let format: LineFormat
    private let realm: RealmPath
    /// Number of bytes before the first object.
    private var headCount = 0
    private var bytes: [UInt8] = []
    /// The objects in the order of their bytes.
    private(set) var objects: [Entry] = []
    /// Whether the bucket's content is removed before the line's objects are stored.
    private(set) var clears = false

    struct Entry {
        let kind: Kind
        let id: UUID
        let position: Int64
        /// The range of the fields' JSON; empty for a tombstone. Only in the device format.
        let fields: Range<Int>
        /// End of the object's bytes.
        let end: Int
    }

    init(_ realm: RealmPath, _ format: LineFormat = .device, clears: Bool = false) {
        self.realm = realm
        self.format = format
        begin(clears: clears)
    }

    private mutating func begin(clears: Bool) {
        self.clears = clears
        bytes.removeAll(keepingCapacity: true)
        switch format {
        case .device: bytes += "{\"objects\":{\"realm\":\"\(realm)\",\"list\":[".utf8
        case .bucket(let generation):
            bytes += "{\"data\":{\"bucket\":\"\(generation):\(realm)\",\"data\":[".utf8
        }
        headCount = bytes.count
        if clears { bytes += BucketLines.clear.utf8 }
    }

    /// Whether the line has no objects.
    var isEmpty: Bool { objects.isEmpty }
    var isFull: Bool { objects.count >= Self.objectCountMax || bytes.count >= Self.bytesFull }

    /// Appends an object; `row` has its fields, or null for a tombstone, in `fieldsColumn`.
    mutating func append(kind: Kind, id: UUID, position: Int64, row: Row, fieldsColumn: Int) {
        unsafe row.withBytes(fieldsColumn) { json in unsafe append(kind: kind, id: id, position: position, json) }
    }

    private mutating func append(kind: Kind, id: UUID, position: Int64, _ json: UnsafeRawBufferPointer?) {
        if bytes.count > headCount { bytes.append(UInt8(ascii: ",")) }
        var fields = bytes.count..<bytes.count
        switch format {
        case .device:
            bytes += "{\"kind\":\"".utf8
            bytes += kind.rawValue.utf8
            bytes += "\",\"id\":\"".utf8
            id.appendText(to: &bytes)
            bytes += "\",\"position\":".utf8
            bytes.append(decimal: position)
            if let json = unsafe json {
                bytes += ",\"fields\":".utf8
                let start = bytes.count
                unsafe bytes.append(contentsOf: json)
                fields = start..<bytes.count
            } else {
                bytes += ",\"deleted\":true".utf8
            }
            bytes.append(UInt8(ascii: "}"))
        case .bucket:
            bytes += "{\"op_id\":\"".utf8
            bytes.append(decimal: position)
            bytes += unsafe json == nil ? "\",\"op\":\"REMOVE\"".utf8 : "\",\"op\":\"PUT\"".utf8
            bytes += ",\"object_type\":\"".utf8
            bytes += kind.rawValue.utf8
            bytes += "\",\"object_id\":\"".utf8
            id.appendText(to: &bytes)
            bytes += realm.description.utf8
            bytes += "\",\"checksum\":0".utf8
            if let json = unsafe json {
                bytes += ",\"data\":\"".utf8
                unsafe bytes.append(escaped: json)
                bytes.append(UInt8(ascii: "\""))
            }
            bytes.append(UInt8(ascii: "}"))
        }
        objects.append(Entry(kind: kind, id: id, position: position, fields: fields, end: bytes.count))
    }

    /// Returns the objects, with a line in the bucket format; only for a line in the device format.
    func inBuckets(generation: Int64) -> ObjectLine {
        var line = ObjectLine(realm, .bucket(generation: generation))
        unsafe bytes.withUnsafeBytes { all in
            for entry in objects {
                unsafe line.append(
                    kind: entry.kind, id: entry.id, position: entry.position,
                    entry.fields.isEmpty ? nil : UnsafeRawBufferPointer(rebasing: all[entry.fields]))
            }
        }
        return line
    }

    /// Returns the finished line, and empties this one.
    ///
    /// - Parameter resume: In the bucket format, the position from which a device continues if the connection ends
    ///   after this line; `nil` if that is the position of the last object.
    mutating func take(_ cursor: Cursor, resume: Int64? = nil) -> ByteBuffer {
        let buffer = finished(bytes[...], cursor, resume)
        objects.removeAll(keepingCapacity: true)
        begin(clears: false)
        return buffer
    }

    /// Returns the finished line with only the objects above a position; `nil` if there are none. Objects are in
    /// position order.
    func line(above position: Int64, _ cursor: Cursor) -> ByteBuffer? {
        guard let first = objects.firstIndex(where: { $0.position > position }) else { return nil }
        if first == 0 { return finished(bytes[...], cursor, nil) }
        return finished(bytes[..<headCount] + bytes[(objects[first - 1].end + 1)...], cursor, nil)
    }

    private func finished(_ bytes: some Collection<UInt8>, _ cursor: Cursor, _ resume: Int64?) -> ByteBuffer {
        let tail =
            switch format {
            case .device: "],\"cursor\":\"\(cursor)\"}}\n"
            case .bucket:
                (resume.map { (bytes.count > headCount ? "," : "") + BucketLines.move(to: $0) } ?? "") + "]}}\n"
            }
        var buffer = ByteBuffer()
        buffer.reserveCapacity(bytes.count + tail.utf8.count)
        buffer.writeBytes(bytes)
        buffer.writeString(tail)
        return buffer
    }
}

extension [UInt8] {
    fileprivate mutating func append(decimal number: Int64) {
        var divisor: Int64 = 1
        while number / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }

    /// Appends stored JSON as the content of a JSON string. It has no control characters.
    fileprivate mutating func append(escaped json: UnsafeRawBufferPointer) {
        reserveCapacity(count + json.count + json.count / 4)
        var start = 0
        for index in 0..<json.count {
            let byte = unsafe json[index]
            guard byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
            unsafe append(contentsOf: UnsafeRawBufferPointer(rebasing: json[start..<index]))
            append(UInt8(ascii: "\\"))
            start = index
        }
        unsafe append(contentsOf: UnsafeRawBufferPointer(rebasing: json[start...]))
    }
}
