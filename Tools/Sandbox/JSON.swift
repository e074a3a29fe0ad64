import Essentials

/// JSON that is written with its fields in the order they are given.
enum JSON: Sendable {
    case null
    case bool(Bool)
    case number(Int)
    /// Finite.
    case decimal(Double)
    case string(String)
    case array([JSON])
    case object([(String, JSON)])
    /// Bytes as they are, whether they are JSON or not.
    case raw([UInt8])

    /// A text; null if there is none.
    static func text(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }

    static func texts(_ values: [String]) -> JSON { .array(values.map { .string($0) }) }

    /// The text of an object's field; `nil` for other values.
    subscript(name: String) -> String? {
        guard case .object(let fields) = self, case .string(let text)? = fields.first(where: { $0.0 == name })?.1
        else { return nil }
        return text
    }

    /// An object with some of its fields; other values are unchanged.
    func keeping(_ isKept: (_ name: String) -> Bool) -> JSON {
        guard case .object(let fields) = self else { return self }
        return .object(fields.filter { isKept($0.0) })
    }

    /// UTF-8, without white space.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1024)
        write(to: &bytes)
        return bytes
    }

    func write(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .number(let value): bytes.append(contentsOf: String(value).utf8)
        // The shortest digits that stand for the value; 8.0 is a number of JSON too.
        case .decimal(let value): bytes.append(contentsOf: String(value).utf8)
        case .string(let value): JSON.write(value, to: &bytes)
        case .array(let values):
            bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                value.write(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let fields):
            bytes.append(UInt8(ascii: "{"))
            for (index, (name, value)) in fields.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSON.write(name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                value.write(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        case .raw(let value): bytes.append(contentsOf: value)
        }
    }

    private static func write(_ text: String, to bytes: inout [UInt8]) {
        // Mostly there is nothing to escape.
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) else {
            JSONText.append(text, to: &bytes)
            return
        }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: text.utf8)
        bytes.append(UInt8(ascii: "\""))
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral {
    init(stringLiteral value: String) { self = .string(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(arrayLiteral elements: JSON...) { self = .array(elements) }
}

extension JSON: ExpressibleByDictionaryLiteral {
    init(dictionaryLiteral elements: (String, JSON)...) { self = .object(elements) }
}
