package import Essentials
package import FoundationEssentials

/// The type of a decoded column: a ``PostgresValue``, or an optional one if the column may be null.
package protocol PostgresDecodable {
    /// - Returns: `nil` if the bytes are not a value of this type.
    static func decode(_ bytes: RawSpan) -> Self?
    /// The value for null; `nil` if null is not allowed.
    static var null: Self? { get }
}

/// A Swift type that corresponds to one PostgreSQL type, transmitted in PostgreSQL's binary format.
package protocol PostgresValue: PostgresDecodable, Sendable {
    /// The type's object identifier (OID), from `pg_type.dat` of PostgreSQL's source.
    static var typeID: UInt32 { get }
    /// The object identifier of the type's array type.
    static var arrayTypeID: UInt32 { get }
    /// Appends the value in network byte order, without its length.
    func encode(into bytes: inout [UInt8])
}

extension PostgresValue {
    @inlinable package static var null: Self? { nil }
}

/// A type that is stored as its raw value if it is declared a ``PostgresValue``.
extension PostgresValue where Self: RawRepresentable, RawValue: PostgresValue {
    package static var typeID: UInt32 { RawValue.typeID }
    package static var arrayTypeID: UInt32 { RawValue.arrayTypeID }
    package func encode(into bytes: inout [UInt8]) { rawValue.encode(into: &bytes) }
    package static func decode(_ bytes: RawSpan) -> Self? { RawValue.decode(bytes).flatMap(Self.init(rawValue:)) }
}

extension Optional: PostgresDecodable where Wrapped: PostgresValue {
    package static var null: Wrapped?? { .some(nil) }
    package static func decode(_ bytes: RawSpan) -> Wrapped?? { Wrapped.decode(bytes).map(Optional.some) }
}

/// The bytes of a JSON document, stored as `jsonb`. PostgreSQL validates them; this type does not.
package struct JSONBytes: Sendable, Equatable, Hashable {
    package var bytes: [UInt8]
    package init(_ bytes: [UInt8]) { self.bytes = bytes }
    package init(_ text: String) { self.bytes = Array(text.utf8) }
}

/// Microseconds since 2000-01-01T00:00:00Z, PostgreSQL's representation of `timestamptz`.
package struct PostgresTime: Sendable, Equatable, Hashable, Comparable {
    package var microsecondsSince2000: Int64
    package init(microsecondsSince2000: Int64) { self.microsecondsSince2000 = microsecondsSince2000 }

    /// Seconds between 1970-01-01 and 2000-01-01.
    private static let epochSeconds: Int64 = 946_684_800

    package init(millisecondsSince1970: Int64) {
        microsecondsSince2000 = (millisecondsSince1970 - Self.epochSeconds * 1_000) * 1_000
    }

    package var millisecondsSince1970: Int64 { microsecondsSince2000 / 1_000 + Self.epochSeconds * 1_000 }

    package static func < (a: Self, b: Self) -> Bool { a.microsecondsSince2000 < b.microsecondsSince2000 }
}

extension FixedWidthInteger {
    /// Appends the integer in big-endian order.
    @inline(__always)
    func appendBigEndian(to bytes: inout [UInt8]) {
        unsafe withUnsafeBytes(of: bigEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    @inline(__always)
    static func readBigEndian(_ bytes: RawSpan) -> Self? {
        guard bytes.byteCount == bitWidth / 8 else { return nil }
        var value: Self = 0
        for index in 0..<bytes.byteCount {
            value = (value << 8) | Self(truncatingIfNeeded: bytes.unsafeLoad(at: index))
        }
        return value
    }
}

extension RawSpan {
    /// Reads one byte. The caller checks the length; `RawSpan` checks it again.
    @inline(__always)
    func unsafeLoad(at index: Int) -> UInt8 { unsafe self.unsafeLoad(fromByteOffset: index, as: UInt8.self) }

    /// Returns a copy of the bytes.
    package func copied() -> [UInt8] {
        unsafe withUnsafeBytes { unsafe Array($0) }
    }
}

extension Int16: PostgresValue {
    package static var typeID: UInt32 { 21 }
    package static var arrayTypeID: UInt32 { 1005 }
    package func encode(into bytes: inout [UInt8]) { appendBigEndian(to: &bytes) }
    package static func decode(_ bytes: RawSpan) -> Int16? { readBigEndian(bytes) }
}

extension Int32: PostgresValue {
    package static var typeID: UInt32 { 23 }
    package static var arrayTypeID: UInt32 { 1007 }
    package func encode(into bytes: inout [UInt8]) { appendBigEndian(to: &bytes) }
    package static func decode(_ bytes: RawSpan) -> Int32? { readBigEndian(bytes) }
}

extension Int64: PostgresValue {
    package static var typeID: UInt32 { 20 }
    package static var arrayTypeID: UInt32 { 1016 }
    package func encode(into bytes: inout [UInt8]) { appendBigEndian(to: &bytes) }
    package static func decode(_ bytes: RawSpan) -> Int64? { readBigEndian(bytes) }
}

extension Bool: PostgresValue {
    package static var typeID: UInt32 { 16 }
    package static var arrayTypeID: UInt32 { 1000 }
    package func encode(into bytes: inout [UInt8]) { bytes.append(self ? 1 : 0) }
    package static func decode(_ bytes: RawSpan) -> Bool? {
        bytes.byteCount == 1 ? bytes.unsafeLoad(at: 0) != 0 : nil
    }
}

extension Double: PostgresValue {
    package static var typeID: UInt32 { 701 }
    package static var arrayTypeID: UInt32 { 1022 }
    package func encode(into bytes: inout [UInt8]) { bitPattern.appendBigEndian(to: &bytes) }
    package static func decode(_ bytes: RawSpan) -> Double? {
        UInt64.readBigEndian(bytes).map(Double.init(bitPattern:))
    }
}

extension String: PostgresValue {
    package static var typeID: UInt32 { 25 }
    package static var arrayTypeID: UInt32 { 1009 }
    package func encode(into bytes: inout [UInt8]) { bytes.append(contentsOf: utf8) }
    package static func decode(_ bytes: RawSpan) -> String? {
        unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}

extension UUID: PostgresValue {
    package static var typeID: UInt32 { 2950 }
    package static var arrayTypeID: UInt32 { 2951 }
    package func encode(into bytes: inout [UInt8]) {
        unsafe withUnsafeBytes(of: uuid) { unsafe bytes.append(contentsOf: $0) }
    }
    package static func decode(_ bytes: RawSpan) -> UUID? {
        guard bytes.byteCount == 16 else { return nil }
        return UUID(uuid: unsafe bytes.unsafeLoadUnaligned(as: uuid_t.self))
    }
}

extension Array: PostgresDecodable where Element: PostgresValue {}

extension Array: PostgresValue where Element: PostgresValue {
    package static var typeID: UInt32 { Element.arrayTypeID }
    package static var arrayTypeID: UInt32 { Element.arrayTypeID }
    package func encode(into bytes: inout [UInt8]) {
        var array = BinaryArray(of: Element.self, capacity: count * 12)
        forEach { array.append($0) }
        bytes = array.finish()
    }
    package static func decode(_ bytes: RawSpan) -> [Element]? { decodeArray(bytes) }
}

extension JSONBytes: PostgresValue {
    package static var typeID: UInt32 { 3802 }
    package static var arrayTypeID: UInt32 { 3807 }
    /// Encodes `jsonb`'s binary format: the version byte 1, then the text.
    package func encode(into bytes: inout [UInt8]) {
        bytes.append(1)
        bytes.append(contentsOf: self.bytes)
    }
    package static func decode(_ bytes: RawSpan) -> JSONBytes? {
        guard bytes.byteCount >= 1, bytes.unsafeLoad(at: 0) == 1 else { return nil }
        return JSONBytes(bytes.extracting(1..<bytes.byteCount).copied())
    }
}

/// Bytes, stored as `bytea`.
package struct Bytea: PostgresValue, Equatable, Hashable {
    package var bytes: [UInt8]
    package init(_ bytes: [UInt8]) { self.bytes = bytes }
    package static var typeID: UInt32 { 17 }
    package static var arrayTypeID: UInt32 { 1001 }
    package func encode(into bytes: inout [UInt8]) { bytes.append(contentsOf: self.bytes) }
    package static func decode(_ bytes: RawSpan) -> Bytea? { Bytea(bytes.copied()) }
}

extension PostgresTime: PostgresValue {
    package static var typeID: UInt32 { 1184 }
    package static var arrayTypeID: UInt32 { 1185 }
    package func encode(into bytes: inout [UInt8]) { microsecondsSince2000.appendBigEndian(to: &bytes) }
    package static func decode(_ bytes: RawSpan) -> PostgresTime? {
        Int64.readBigEndian(bytes).map(PostgresTime.init(microsecondsSince2000:))
    }
}

/// A `timestamptz`, encoded to the millisecond; decoding truncates finer fractions.
extension Timestamp: PostgresValue {
    package static var typeID: UInt32 { PostgresTime.typeID }
    package static var arrayTypeID: UInt32 { PostgresTime.arrayTypeID }
    package func encode(into bytes: inout [UInt8]) {
        PostgresTime(millisecondsSince1970: millisecondsSinceEpoch).encode(into: &bytes)
    }
    package static func decode(_ bytes: RawSpan) -> Timestamp? {
        PostgresTime.decode(bytes).map { Timestamp(millisecondsSinceEpoch: $0.millisecondsSince1970) }
    }
}
