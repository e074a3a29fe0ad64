/// An array parameter in PostgreSQL's binary format, appended value by value.
///
/// Source: `array_recv` in PostgreSQL's `arrayfuncs.c`: dimensions, a flag for nulls, the element type, length and
/// lower bound of each dimension, then each element as its length and bytes; −1 represents null.
package struct BinaryArray: Sendable {
    private var bytes: [UInt8]
    private let elementTypeID: UInt32
    let arrayTypeID: UInt32
    private var hasNull = false
    package private(set) var count: Int32 = 0

    private static let headerLength = 20

    /// - Parameter capacity: The expected size of the elements in bytes, including their lengths.
    package init<Element: PostgresValue>(of type: Element.Type, capacity: Int = 0) {
        elementTypeID = Element.typeID
        arrayTypeID = Element.arrayTypeID
        bytes = []
        bytes.reserveCapacity(Self.headerLength + capacity)
        bytes.append(contentsOf: repeatElement(0, count: Self.headerLength))
    }

    /// Appends a value, which must have the array's element type.
    @inline(__always)
    package mutating func append<Element: PostgresValue>(_ value: Element) {
        let lengthAt = bytes.count
        Int32(0).appendBigEndian(to: &bytes)
        value.encode(into: &bytes)
        patch(Int32(bytes.count - lengthAt - 4), at: lengthAt)
        count += 1
    }

    @inlinable @inline(__always)
    package mutating func append<Element: PostgresValue>(_ value: Element?) {
        if let value { append(value) } else { appendNull() }
    }

    package mutating func appendNull() {
        Int32(-1).appendBigEndian(to: &bytes)
        hasNull = true
        count += 1
    }

    private mutating func patch(_ value: Int32, at index: Int) {
        bytes[index] = UInt8(truncatingIfNeeded: value >> 24)
        bytes[index + 1] = UInt8(truncatingIfNeeded: value >> 16)
        bytes[index + 2] = UInt8(truncatingIfNeeded: value >> 8)
        bytes[index + 3] = UInt8(truncatingIfNeeded: value)
    }

    /// Returns the parameter's bytes, including the header.
    consuming func finish() -> [UInt8] {
        patch(count == 0 ? 0 : 1, at: 0)
        patch(hasNull ? 1 : 0, at: 4)
        patch(Int32(bitPattern: elementTypeID), at: 8)
        patch(count, at: 12)
        patch(1, at: 16)
        if count == 0 { bytes.removeLast(8) }
        return bytes
    }
}

/// Decodes a one-dimensional array without nulls.
func decodeArray<Element: PostgresValue>(_ bytes: RawSpan) -> [Element]? {
    func integer(at offset: Int) -> Int? {
        guard offset + 4 <= bytes.byteCount else { return nil }
        return Int32.readBigEndian(bytes.extracting(offset..<offset + 4)).map(Int.init)
    }
    guard let dimensions = integer(at: 0) else { return nil }
    if dimensions == 0 { return [] }
    guard dimensions == 1, let count = integer(at: 12), count >= 0 else { return nil }
    var values: [Element] = []
    values.reserveCapacity(count)
    var offset = 20
    for _ in 0..<count {
        guard let length = integer(at: offset), length >= 0, offset + 4 + length <= bytes.byteCount,
            let value = Element.decode(bytes.extracting(offset + 4..<offset + 4 + length))
        else { return nil }
        values.append(value)
        offset += 4 + length
    }
    return values
}
