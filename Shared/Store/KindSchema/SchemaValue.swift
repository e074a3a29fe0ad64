package import Essentials

/// A JSON value as JSON Schema compares it: `1` and `1.0` are equal, and the members of an object have no order.
package indirect enum SchemaValue: Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
    case list([SchemaValue])
    case object([Member])

    /// A member of an object.
    package struct Member: Sendable {
        package let name: String
        package let value: SchemaValue

        package init(_ name: String, _ value: SchemaValue) { (self.name, self.value) = (name, value) }
    }

    /// Parses one value.
    ///
    /// - Throws: ``JSONError``, the first one detected: also for duplicate keys, and for values that are nested more
    ///   than 32 deep.
    package init(_ bytes: [UInt8]) throws(JSONError) {
        try JSONCheck.check(bytes)
        try self.init(valid: bytes[...])
    }

    private init(valid slice: ArraySlice<UInt8>) throws(JSONError) {
        let bytes = Array(slice.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 })
        switch bytes.first {
        case UInt8(ascii: "{"):
            var members: [Member] = []
            for member in try JSONCheck.members(of: bytes, countMax: .max) {
                members.append(Member(member.key, try SchemaValue(valid: bytes[member.value])))
            }
            self = .object(members)
        case UInt8(ascii: "["):
            var values: [SchemaValue] = []
            for range in try JSONCheck.elements(of: bytes) { values.append(try SchemaValue(valid: bytes[range])) }
            self = .list(values)
        case UInt8(ascii: "\""):
            let list = try JSONObject(Array("{\"v\":".utf8) + bytes + Array("}".utf8))
            self = .text(list.text(of: "v") ?? "")
        case UInt8(ascii: "t"): self = .bool(true)
        case UInt8(ascii: "f"): self = .bool(false)
        case UInt8(ascii: "n"): self = .null
        default:
            if let whole = JSONNumber.whole(bytes[...], as: Int64.self) {
                self = .integer(whole)
            } else {
                self = .number(Double(String(decoding: bytes, as: UTF8.self).trimmed) ?? 0)
            }
        }
    }

    /// The members of an object; `nil` for another value.
    package var members: [Member]? { if case .object(let members) = self { members } else { nil } }
    /// The values of a list; `nil` for another value.
    package var values: [SchemaValue]? { if case .list(let values) = self { values } else { nil } }
    /// The text; `nil` for another value.
    package var text: String? { if case .text(let text) = self { text } else { nil } }

    /// Returns the value of an object's member.
    package subscript(_ name: String) -> SchemaValue? { members?.first { $0.name == name }?.value }

    /// The value as JSON text, for messages and files.
    package var json: String {
        switch self {
        case .null: "null"
        case .bool(let flag): flag ? "true" : "false"
        case .integer(let number): "\(number)"
        case .number(let number): "\(number)"
        case .text(let text): String(decoding: JSONText.string(text), as: UTF8.self)
        case .list(let values): "[" + values.map(\.json).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { SchemaValue.text($0.name).json + ":" + $0.value.json }.joined(separator: ",") + "}"
        }
    }
}

extension SchemaValue: Equatable {
    package static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.text(let left), .text(let right)): left.unicodeScalars.elementsEqual(right.unicodeScalars)
        case (.list(let left), .list(let right)): left == right
        case (.object(let left), .object(let right)):
            left.count == right.count && left.allSatisfy { member in right.contains { $0 == member } }
        default: left.compared(to: right) == .some(.equal)
        }
    }

    /// The order of two numbers.
    enum Order { case below, equal, above }

    /// Compares two numbers exactly; `nil` if one of the values is no number.
    func compared(to other: SchemaValue) -> Order? {
        switch (self, other) {
        case (.integer(let left), .integer(let right)): left < right ? .below : left > right ? .above : .equal
        case (.number(let left), .number(let right)): left < right ? .below : left > right ? .above : .equal
        case (.integer(let left), .number(let right)):
            // Compared with the number's whole part, which is exact, and then with its fraction.
            if let whole = Int64(exactly: right.rounded(.down)) {
                left < whole ? .below : left > whole ? .above : right > right.rounded(.down) ? .below : .equal
            } else {
                right > 0 ? .below : .above
            }
        case (.number, .integer):
            switch other.compared(to: self) {
            case .below: .above
            case .above: .below
            case .equal, nil: .equal
            }
        default: nil
        }
    }
}

extension SchemaValue.Member: Equatable {
    package static func == (left: Self, right: Self) -> Bool {
        left.name.unicodeScalars.elementsEqual(right.name.unicodeScalars) && left.value == right.value
    }
}

extension String {
    fileprivate var trimmed: String { filter { !$0.isWhitespace } }
}
