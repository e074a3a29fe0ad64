import Essentials
import FoundationEssentials
import Model
import NIOCore
import ObjectStore
import Postgres

/// An `objects` line under construction: its objects' bytes are copied directly from PostgreSQL's response.
struct ObjectLine {
    static let objectCountMax = 500
    /// With the largest possible object added, a line stays below 256 KB.
    static let bytesFull = 190_000

    private let head: [UInt8]
    private var bytes: [UInt8]
    /// Each object's position, and the end of its bytes.
    private(set) var objects: [(position: Int64, end: Int)] = []

    init(_ realm: RealmPath) {
        head = Array("{\"objects\":{\"realm\":\"\(realm)\",\"list\":[".utf8)
        bytes = head
    }

    var isEmpty: Bool { objects.isEmpty }
    var isFull: Bool { objects.count >= Self.objectCountMax || bytes.count >= Self.bytesFull }

    /// Appends an object; `row` has its fields, or null for a tombstone, in `fieldsColumn`.
    mutating func append(kind: Kind, id: UUID, position: Int64, row: Row, fieldsColumn: Int) {
        if !objects.isEmpty { bytes.append(UInt8(ascii: ",")) }
        bytes += "{\"kind\":\"".utf8
        bytes += kind.rawValue.utf8
        bytes += "\",\"id\":\"".utf8
        id.appendText(to: &bytes)
        bytes += "\",\"position\":".utf8
        bytes.append(decimal: position)
        unsafe row.withBytes(fieldsColumn) { json in
            if let json = unsafe json {
                bytes += ",\"fields\":".utf8
                unsafe bytes.append(contentsOf: json)
            } else {
                bytes += ",\"deleted\":true".utf8
            }
        }
        bytes.append(UInt8(ascii: "}"))
        objects.append((position, bytes.count))
    }

    /// Returns the finished line, and empties this one.
    mutating func take(_ cursor: Cursor) -> ByteBuffer {
        let buffer = finished(bytes[...], cursor)
        bytes.removeLast(bytes.count - head.count)
        objects.removeAll(keepingCapacity: true)
        return buffer
    }

    /// Returns the finished line with only the objects above a position; `nil` if there are none. Objects are in
    /// position order.
    func line(above position: Int64, _ cursor: Cursor) -> ByteBuffer? {
        guard let first = objects.firstIndex(where: { $0.position > position }) else { return nil }
        if first == 0 { return finished(bytes[...], cursor) }
        return finished(head + bytes[(objects[first - 1].end + 1)...], cursor)
    }

    private func finished(_ bytes: some Collection<UInt8>, _ cursor: Cursor) -> ByteBuffer {
        let tail = "],\"cursor\":\"\(cursor)\"}}\n"
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
}
