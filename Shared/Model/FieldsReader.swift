import Essentials
import FoundationEssentials

/// Reads the fields of an object as their type decodes them, from where their bytes are, without building values
/// first: it takes less than half of what `JSONDecoder` does.
///
/// It accepts what `JSONDecoder` accepts, except members that a nested object with ``ClosedNames`` does not have. What
/// it refuses it reports by path, with what is allowed. It notes ids in capitals and whole numbers written with a point
/// or an exponent, which are stored in one form.
struct FieldsReader: Decoder {
    /// Values that are stored in another form than they were written in, in the order in which they were read.
    final class Notes {
        var edits: [(range: Range<Int>, text: String)] = []
    }

    typealias Member = (key: String, value: Range<Int>)

    let bytes: [UInt8]
    let value: Range<Int>
    /// The members of the outermost object, which was split before, and whose names the caller checks.
    private let members: [Member]?
    let notes: Notes

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ object: JSONObject, _ notes: Notes) {
        (bytes, value, self.notes) = (object.bytes, 0..<object.bytes.count, notes)
        members = object.members.map { ($0.key, $0.value) }
    }

    private init(_ bytes: [UInt8], _ value: Range<Int>, _ notes: Notes) {
        (self.bytes, self.value, self.notes, members) = (bytes, value, notes, nil)
    }

    func at(_ range: Range<Int>) -> FieldsReader { FieldsReader(bytes, range, notes) }

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

    /// Maximum number of a nested object's members: each is searched for among all of them.
    private static let nestedCountMax = 512

    /// The members of a nested object.
    private func nested<Key: CodingKey>(as type: Key.Type) throws -> [Member] {
        let start = value.lowerBound
        guard let members = try? JSONCheck.members(of: Array(bytes[value]), countMax: .max) else {
            throw FieldProblem(mustBe: "an object")
        }
        guard members.count <= Self.nestedCountMax else {
            throw FieldProblem(mustBe: "an object of at most \(Self.nestedCountMax) members")
        }
        if let names = type as? any ClosedNames.Type {
            let known = Self.names(names)
            if let other = members.first(where: { !known.contains($0.key) }) {
                let list = known.joined(separator: ", ")
                throw FieldProblem("has no field '\(other.key.excerpt)'; it has: \(list)")
            }
        }
        return members.map { member in
            (member.key, (member.value.lowerBound + start)..<(member.value.upperBound + start))
        }
    }

    private static func names<Names: ClosedNames>(_ type: Names.Type) -> [String] {
        type.allCases.map(\.stringValue)
    }
}

/// The names of a nested object's members that has no others: a member under another name is refused, as a field of the
/// outermost object is.
protocol ClosedNames: CodingKey, CaseIterable {}

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

    /// A value of any other type, which reads itself.
    func any<Value: Decodable>(_ type: Value.Type) throws -> Value {
        do {
            let read = try Value(from: self)
            if let id = read as? WrittenID { note("\"\(id.id.text)\"") }
            return read
        } catch {
            if let needed = FieldForm.needed(by: type) { throw FieldProblem(mustBe: needed) }
            throw error as? FieldProblem ?? FieldProblem("cannot be read")
        }
    }

    /// Notes that the value is stored as this text.
    private func note(_ text: String) {
        if !bytes[value].elementsEqual(text.utf8) { notes.edits.append((value, text)) }
    }
}

/// The descriptions of values that are not made of others.
private enum FieldForm {
    static func needed(by type: any Decodable.Type) -> String? {
        if let words = type as? any CaseIterable.Type { return "one of " + self.words(words).joined(separator: ", ") }
        return switch type {
        case is WrittenID.Type: "a UUID"
        case is Timestamp.Type: "a time such as 2015-03-30T12:00:00Z (RFC 3339)"
        case is ZonedTime.Type: "a time with offset such as 2015-03-30T08:00:00-04:00 (RFC 3339)"
        case is Day.Type: "a date as yyyy-MM-dd"
        case is RealmPath.Type: "a realm's path"
        default: nil
        }
    }

    private static func words<Words: CaseIterable>(_ type: Words.Type) -> [String] {
        type.allCases.compactMap { ($0 as? any RawRepresentable)?.rawValue as? String }
    }
}
