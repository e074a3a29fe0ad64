package import Essentials

/// A JSON value as JSON Schema compares it: `1` and `1.0` are equal, and the members of an object have no order.
package indirect enum SchemaValue: Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    /// A whole number beyond 64 bits.
    case large(Double)
    /// A number with a fraction, as the nearest double.
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
    ///   than 32 deep, or an outermost object of more than 512 members.
    package init(_ bytes: [UInt8]) throws(JSONError) {
        try JSONCheck.check(bytes)
        var parser = Parser(bytes: bytes)
        self = try parser.value()
    }

    /// Parses an object, which was checked before.
    package init(_ object: JSONObject) throws(JSONError) {
        var parser = Parser(bytes: object.bytes)
        self = try parser.value()
    }

    /// Reads checked JSON from its beginning to its end.
    private struct Parser {
        let bytes: [UInt8]
        private var index = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        private mutating func skipBlanks() { while bytes[index] <= 0x20 { index += 1 } }

        /// Skips blanks, and this byte if it follows.
        private mutating func take(_ byte: UInt8) -> Bool {
            skipBlanks()
            guard bytes[index] == byte else { return false }
            index += 1
            return true
        }

        mutating func value() throws(JSONError) -> SchemaValue {
            skipBlanks()
            switch bytes[index] {
            case UInt8(ascii: "{"): return .object(try members())
            case UInt8(ascii: "["): return .list(try values())
            case UInt8(ascii: "\""): return .text(try text())
            case UInt8(ascii: "t"): return literal("true", .bool(true))
            case UInt8(ascii: "f"): return literal("false", .bool(false))
            case UInt8(ascii: "n"): return literal("null", .null)
            default: return try number()
            }
        }

        private mutating func literal(_ text: StaticString, _ value: SchemaValue) -> SchemaValue {
            index += text.utf8CodeUnitCount
            return value
        }

        private mutating func members() throws(JSONError) -> [Member] {
            var members: [Member] = []
            index += 1
            while !take(UInt8(ascii: "}")) {
                _ = take(UInt8(ascii: ","))
                skipBlanks()
                let name = try text()
                _ = take(UInt8(ascii: ":"))
                members.append(Member(name, try value()))
            }
            return members
        }

        private mutating func values() throws(JSONError) -> [SchemaValue] {
            var values: [SchemaValue] = []
            index += 1
            while !take(UInt8(ascii: "]")) {
                _ = take(UInt8(ascii: ","))
                values.append(try value())
            }
            return values
        }

        private mutating func text() throws(JSONError) -> String {
            let start = index
            var hasEscapes = false
            index += 1
            while bytes[index] != UInt8(ascii: "\"") {
                let isEscape = bytes[index] == UInt8(ascii: "\\")
                hasEscapes = hasEscapes || isEscape
                index += isEscape ? 2 : 1
            }
            index += 1
            guard hasEscapes else { return String(decoding: bytes[(start + 1)..<(index - 1)], as: UTF8.self) }
            let object = try JSONObject(Array("{\"v\":".utf8) + bytes[start..<index] + Array("}".utf8))
            return object.text(of: "v") ?? ""
        }

        private mutating func number() throws(JSONError) -> SchemaValue {
            let start = index
            let ends: [UInt8] = [UInt8(ascii: ","), UInt8(ascii: "]"), UInt8(ascii: "}")]
            while index < bytes.count, bytes[index] > 0x20, !ends.contains(bytes[index]) { index += 1 }
            let slice = bytes[start..<index]
            if let whole = JSONNumber.whole(slice, as: Int64.self) { return .integer(whole) }
            let digits = try JSONCanonical.bytes(of: Array(slice))
            let number = Double(String(decoding: digits, as: UTF8.self)) ?? 0
            let fraction = digits.drop { $0 != UInt8(ascii: ".") }.dropFirst()
            return fraction.allSatisfy { $0 == UInt8(ascii: "0") } ? .large(number) : .number(number)
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
        case .large(let number), .number(let number): "\(number)"
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
        case (.text(let left), .text(let right)): ScalarText(left) == ScalarText(right)
        case (.list(let left), .list(let right)): left == right
        case (.object(let left), .object(let right)):
            left.count == right.count && valuesByName(left) == valuesByName(right)
        default: left.compared(to: right) == .some(.equal)
        }
    }

    /// The order of two numbers.
    enum Order { case below, equal, above }

    /// Compares two numbers; `nil` if one of the values is no number. Whole numbers of 64 bits are compared exactly.
    func compared(to other: SchemaValue) -> Order? {
        switch (self, other) {
        case (.integer(let left), .integer(let right)): return left < right ? .below : left > right ? .above : .equal
        case (.integer(let left), .large(let right)), (.integer(let left), .number(let right)):
            return Self.compare(left, right)
        case (.large(let left), .integer(let right)), (.number(let left), .integer(let right)):
            switch Self.compare(right, left) {
            case .below: return .above
            case .above: return .below
            case .equal: return .equal
            }
        default:
            guard let left = double, let right = other.double else { return nil }
            return left < right ? .below : left > right ? .above : .equal
        }
    }

    private var double: Double? {
        switch self {
        case .large(let number), .number(let number): number
        default: nil
        }
    }

    /// Compares with the number's whole part, which is exact, and then with its fraction.
    private static func compare(_ left: Int64, _ right: Double) -> Order {
        guard let whole = Int64(exactly: right.rounded(.down)) else { return right > 0 ? .below : .above }
        return left < whole ? .below : left > whole ? .above : right > right.rounded(.down) ? .below : .equal
    }

    private static func valuesByName(_ members: [Member]) -> [ScalarText: SchemaValue] {
        Dictionary(members.map { (ScalarText($0.name), $0.value) }) { first, _ in first }
    }
}

extension SchemaValue.Member: Equatable {
    package static func == (left: Self, right: Self) -> Bool {
        ScalarText(left.name) == ScalarText(right.name) && left.value == right.value
    }
}
