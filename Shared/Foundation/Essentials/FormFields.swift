/// Names and values in `application/x-www-form-urlencoded`, the encoding of form bodies and URL queries.
///
/// Source: WHATWG URL Standard §5.
public struct FormFields: Equatable, Sendable {
    /// The fields in the order of the text.
    public private(set) var items: [Item]

    /// One name with its value.
    public struct Item: Equatable, Sendable {
        /// The field's name.
        public let name: String
        /// Its value.
        public let value: String
    }

    /// The maximum number of fields; a text with more is rejected.
    public static let countMax = 64

    /// Creates an empty form.
    public init() { items = [] }

    /// Decodes a text; returns `nil` if it is not UTF-8 after decoding or has more than ``countMax`` fields.
    public init?(_ text: some StringProtocol) {
        items = []
        for part in text.utf8.split(separator: UInt8(ascii: "&")) {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decode(pair[0]), let value = pair.count > 1 ? Self.decode(pair[1]) : "",
                items.count < Self.countMax
            else { return nil }
            items.append(Item(name: name, value: value))
        }
    }

    /// Returns the value of a field that occurs exactly once, otherwise `nil`: OAuth parameters must not be repeated
    /// (RFC 6749 §3.1).
    public subscript(name: String) -> String? {
        let matches = items.filter { $0.name == name }
        return matches.count == 1 ? matches[0].value : nil
    }

    /// Adds a field.
    public mutating func add(_ name: String, _ value: String) { items.append(Item(name: name, value: value)) }

    /// The encoded text, pure ASCII.
    public var encoded: String {
        items.map { Self.encode($0.name) + "=" + Self.encode($0.value) }.joined(separator: "&")
    }

    /// Percent-encodes all characters except RFC 3986's unreserved ones.
    public static func encode(_ text: String) -> String {
        var encoded: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.append(byte)
            default: encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    private static func decode(_ text: some Sequence<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var digits: [UInt8]?
        for byte in text {
            if let high = digits {
                guard let digit = hexadecimalValue(of: byte) else { return nil }
                if high.isEmpty {
                    digits = [digit]
                } else {
                    bytes.append(high[0] << 4 | digit)
                    digits = nil
                }
            } else if byte == UInt8(ascii: "%") {
                digits = []
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return digits == nil ? String(validating: bytes, as: UTF8.self) : nil
    }
}

/// Text for HTML, in which characters that could end the text or an attribute's value are character references.
public struct HTMLText: CustomStringConvertible, Sendable {
    /// The escaped text.
    public let description: String

    /// Escapes `text`; control characters become blanks.
    public init(_ text: String) {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F: escaped += " "
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        description = escaped
    }
}
