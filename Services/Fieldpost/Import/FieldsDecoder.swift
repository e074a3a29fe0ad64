import Essentials
import FoundationEssentials
import Model

/// Decodes the fields of an object from where its members are, without building values first.
///
/// It is there because a million lines are decoded only to learn that they can be: it takes less than half of what
/// `JSONDecoder` does. It knows texts, whole numbers, decimal ones, truth values and objects in their plain forms; what
/// else there is it refuses, and then `JSONDecoder` decides, and says what is wrong.
struct FieldsDecoder: Decoder {
    /// Not a plain form.
    struct Refusal: Error {}

    fileprivate let bytes: [UInt8]
    fileprivate let value: Range<Int>
    /// The members, when it is an object that was split already.
    fileprivate var members: [JSONMember]?

    let codingPath: [any CodingKey] = []
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ object: JSONObject) {
        (bytes, value, members) = (object.bytes, 0..<object.bytes.count, object.members)
    }

    fileprivate init(_ bytes: [UInt8], _ value: Range<Int>) { (self.bytes, self.value) = (bytes, value) }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        if let members { return KeyedDecodingContainer(Keyed(bytes: bytes, members: members)) }
        let object = try JSONObject(Array(bytes[value]))
        return KeyedDecodingContainer(Keyed(bytes: object.bytes, members: object.members))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Refusal() }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { Single(decoder: self) }

    /// Why these are not the fields of a kind; `nil` when they are.
    static func objection(to object: JSONObject, as kind: Kind) -> String? {
        func decoded<Fields: KindFields>(_ type: Fields.Type) -> Fields? { try? Fields(from: FieldsDecoder(object)) }
        guard let fields = decoded(kind.row.fields) else { return kind.objection(to: object.bytes) }
        return fields.objection
    }
}

// MARK: Values

extension FieldsDecoder {
    private static let quote = UInt8(ascii: "\"")

    fileprivate var isNull: Bool { bytes[value].elementsEqual("null".utf8) }

    fileprivate func text() throws -> String {
        guard let text = JSONObject.text(bytes[value]) else { throw Refusal() }
        return text
    }

    fileprivate func truth() throws -> Bool {
        if bytes[value].elementsEqual("true".utf8) { return true }
        guard bytes[value].elementsEqual("false".utf8) else { throw Refusal() }
        return false
    }

    /// Without a point and an exponent.
    fileprivate func whole<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        guard bytes[value].first != Self.quote, let number = Number(String(decoding: bytes[value], as: UTF8.self))
        else { throw Refusal() }
        return number
    }

    fileprivate func decimal() throws -> Double {
        if let short = Self.shortDecimal(bytes[value]) { return short }
        guard bytes[value].first != Self.quote, let number = Double(String(decoding: bytes[value], as: UTF8.self)),
            number.isFinite
        else { throw Refusal() }
        return number
    }

    /// A number of at most 15 digits without an exponent: a quotient of two numbers that a `Double` has exactly is
    /// rounded once, and so right (W. D. Clinger, "How to Read Floating Point Numbers Accurately", 1990).
    private static func shortDecimal(_ text: ArraySlice<UInt8>) -> Double? {
        var (digits, divisor, count, isBehindPoint) = (0, 1.0, 0, false)
        let isNegative = text.first == UInt8(ascii: "-")
        for byte in isNegative ? text.dropFirst() : text {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                (digits, count) = (digits * 10 + Int(byte - UInt8(ascii: "0")), count + 1)
                if isBehindPoint { divisor *= 10 }
            case UInt8(ascii: "."): isBehindPoint = true
            default: return nil
            }
            guard count <= 15 else { return nil }
        }
        guard count > 0 else { return nil }
        return (isNegative ? -1 : 1) * Double(digits) / divisor
    }

    fileprivate func any<Value: Decodable>(_ type: Value.Type) throws -> Value {
        // As JSONDecoder takes them: not as their own `init(from:)` does.
        guard type != Date.self, type != Data.self, type != URL.self, type != Decimal.self else { throw Refusal() }
        if type == UUID.self, let id = Self.id(bytes[value]) as? Value { return id }
        return try Value(from: self)
    }

    /// The id that a JSON string is; `nil` when it is none.
    static func id(_ value: ArraySlice<UInt8>) -> UUID? {
        guard value.count == 38, value.first == quote, value.last == quote else { return nil }
        let characters = value.dropFirst().dropLast()
        return unsafe UUID(ascii: characters.span.bytes)
    }
}

// MARK: Containers

private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let bytes: [UInt8]
    let members: [JSONMember]

    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { members.compactMap { Key(stringValue: $0.key) } }

    private func find(_ key: Key) -> FieldsDecoder? {
        let name = key.stringValue
        return members.first { $0.key == name }.map { FieldsDecoder(bytes, $0.value) }
    }

    private func at(_ key: Key) throws -> FieldsDecoder {
        guard let found = find(key) else { throw FieldsDecoder.Refusal() }
        return found
    }

    func contains(_ key: Key) -> Bool { find(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try at(key).isNull }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try at(key).truth() }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try at(key).text() }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try at(key).decimal() }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { throw FieldsDecoder.Refusal() }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try at(key).whole(type) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try at(key).whole(type) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try at(key).whole(type) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try at(key).whole(type) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try at(key).whole(type) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try at(key).whole(type) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try at(key).whole(type) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try at(key).whole(type) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try at(key).whole(type) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try at(key).whole(type) }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try at(key).any(type) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> { try at(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        throw FieldsDecoder.Refusal()
    }
    func superDecoder() throws -> any Decoder { throw FieldsDecoder.Refusal() }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw FieldsDecoder.Refusal() }
}

private struct Single: SingleValueDecodingContainer {
    let decoder: FieldsDecoder

    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool { decoder.isNull }
    func decode(_ type: Bool.Type) throws -> Bool { try decoder.truth() }
    func decode(_ type: String.Type) throws -> String { try decoder.text() }
    func decode(_ type: Double.Type) throws -> Double { try decoder.decimal() }
    func decode(_ type: Float.Type) throws -> Float { throw FieldsDecoder.Refusal() }
    func decode(_ type: Int.Type) throws -> Int { try decoder.whole(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try decoder.whole(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try decoder.whole(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try decoder.whole(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try decoder.whole(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try decoder.whole(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try decoder.whole(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try decoder.whole(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try decoder.whole(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try decoder.whole(type) }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoder.any(type) }
}
