import Essentials
import FoundationEssentials

/// A decoder that reads an object's fields directly from their bytes, in less than half the time of `JSONDecoder`.
///
/// It accepts the same input as `JSONDecoder`, except unknown members of nested objects with ``ClosedCodingKeys``. Its
/// errors contain the path and the allowed values. It records ids in upper case and whole numbers with a decimal point
/// or exponent, which are stored in a normalised form.
struct FieldsReader: Decoder {
    /// Values that are stored in another form than they were written in, in reading order.
    final class Normalization {
        var edits: [(range: Range<Int>, text: String)] = []
    }

    typealias Member = (key: String, value: Range<Int>)

    let bytes: [UInt8]
    let value: Range<Int>
    /// The members of the outermost object, which the caller has split and whose names it validates.
    private let members: [Member]?
    let normalization: Normalization

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ object: JSONObject, _ normalization: Normalization) {
        (bytes, value, self.normalization) = (object.bytes, 0..<object.bytes.count, normalization)
        members = object.members.map { ($0.key, $0.value) }
    }

    private init(_ bytes: [UInt8], _ value: Range<Int>, _ normalization: Normalization) {
        (self.bytes, self.value, self.normalization, members) = (bytes, value, normalization, nil)
    }

    func at(_ range: Range<Int>) -> FieldsReader { FieldsReader(bytes, range, normalization) }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(KeyedFields(reader: self, members: try members ?? nested(as: type)))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let start = value.lowerBound
        guard let elements = try? JSONCheck.elements(of: Array(bytes[value])) else {
            throw FieldProblem(mustBe: "a list")
        }
        return ListedFields(
            reader: self, elements: elements.map { ($0.lowerBound + start)..<($0.upperBound + start) })
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { SingleField(reader: self) }

    /// Maximum number of a nested object's members, each of which is looked up linearly.
    private static let nestedCountMax = 512

    /// Returns the members of a nested object.
    private func nested<Key: CodingKey>(as type: Key.Type) throws -> [Member] {
        let start = value.lowerBound
        guard let members = try? JSONCheck.members(of: Array(bytes[value]), countMax: .max) else {
            throw FieldProblem(mustBe: "an object")
        }
        guard members.count <= Self.nestedCountMax else {
            throw FieldProblem(mustBe: "an object of at most \(Self.nestedCountMax) members")
        }
        if let names = type as? any ClosedCodingKeys.Type,
            let other = members.first(where: { Key(stringValue: $0.key) == nil })
        {
            let list = Self.names(names).joined(separator: ", ")
            throw FieldProblem("has no field '\(other.key.excerpt)'; allowed are: \(list)")
        }
        return members.map { member in
            (member.key, (member.value.lowerBound + start)..<(member.value.upperBound + start))
        }
    }

    private static func names<Names: ClosedCodingKeys>(_ type: Names.Type) -> [String] {
        type.allCases.map(\.stringValue)
    }
}

/// Coding keys of a nested object that rejects members under other names, as the outermost object does.
protocol ClosedCodingKeys: CodingKey, CaseIterable {}

// MARK: Values

extension FieldsReader {
    private static let quote = UInt8(ascii: "\"")

    var isNull: Bool { bytes[value].elementsEqual("null".utf8) }

    func text() throws -> String {
        guard let text = JSONObject.text(bytes[value]) else { throw FieldProblem(mustBe: "a text") }
        return text
    }

    func truth() throws -> Bool {
        if bytes[value].elementsEqual("true".utf8) { return true }
        guard bytes[value].elementsEqual("false".utf8) else { throw FieldProblem(mustBe: "true or false") }
        return false
    }

    func whole<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        guard let number = JSONNumber.whole(bytes[value], as: type) else {
            throw FieldProblem(mustBe: "a whole number")
        }
        note("\(number)")
        return number
    }

    func decimal() throws -> Double {
        guard bytes[value].first != Self.quote, let number = Double(String(decoding: bytes[value], as: UTF8.self)),
            number.isFinite
        else { throw FieldProblem(mustBe: "a number") }
        return number
    }

    /// Reads a value of any other type with its own decoder.
    func any<Value: Decodable>(_ type: Value.Type) throws -> Value {
        do {
            let read = try Value(from: self)
            if let id = read as? WrittenID { note("\"\(id.id.text)\"") }
            return read
        } catch {
            if let allowed = ValueDescription.allowed(for: type) { throw FieldProblem(mustBe: allowed) }
            throw error as? FieldProblem ?? FieldProblem("cannot be read")
        }
    }

    /// Records that the value is stored as this text.
    private func note(_ text: String) {
        if !bytes[value].elementsEqual(text.utf8) { normalization.edits.append((value, text)) }
    }
}

/// Descriptions of the values that a scalar type accepts.
private enum ValueDescription {
    static func allowed(for type: any Decodable.Type) -> String? {
        if let cases = type as? any CaseIterable.Type { return "one of " + rawValues(cases).joined(separator: ", ") }
        return switch type {
        case is WrittenID.Type: "a UUID"
        case is Timestamp.Type: "a time such as 2015-03-30T12:00:00Z (RFC 3339)"
        case is ZonedTime.Type: "a time with offset such as 2015-03-30T08:00:00-04:00 (RFC 3339)"
        case is Day.Type: "a date as yyyy-MM-dd"
        case is RealmPath.Type: "a realm's path"
        default: nil
        }
    }

    private static func rawValues<Cases: CaseIterable>(_ type: Cases.Type) -> [String] {
        type.allCases.compactMap { ($0 as? any RawRepresentable)?.rawValue as? String }
    }
}
