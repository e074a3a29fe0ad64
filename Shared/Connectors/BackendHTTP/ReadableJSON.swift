internal import Essentials

/// Repair of JSON from other systems, so that one undecodable value does not make a whole document unreadable.
///
/// `JSONDecoder` rejects a document because of one lone surrogate, one invalid byte or one deeply nested value. Each of
/// them is replaced, so that only the value that contains it changes:
///
/// | in the document | replacement |
/// |---|---|
/// | `\u0000`, which PostgreSQL does not store; a lone surrogate (`\ud83d`); an escape that JSON does not define | U+FFFD |
/// | a byte that is not UTF-8, such as in an encoded surrogate (ED A0 BD) or an overlong form | U+FFFD |
/// | an unescaped control character | its escape |
/// | an array or object deeper than ``depthMax``; a literal that JSON does not define (`NaN`) | a text of U+FFFD |
///
/// A document with an invalid structure is not repaired.
struct ReadableJSON {
    /// Maximum nesting of arrays and objects.
    static let depthMax = 100

    private let input: [UInt8]
    private var output: [UInt8] = []
    private var index = 0
    /// The number of input bytes that are already represented in the output.
    private var copiedCount = 0

    private init(_ input: [UInt8]) { self.input = input }

    /// Returns the repaired document; the same bytes if nothing needs repair.
    static func repaired(_ json: [UInt8]) -> [UInt8] {
        var repair = ReadableJSON(json)
        repair.readDocument()
        return repair.copiedCount == 0 ? json : repair.output + json[repair.copiedCount...]
    }

    private mutating func readDocument() {
        // The decoder handles a byte order mark.
        if input.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
        var depth = 0
        while index < input.count {
            switch input[index] {
            case UInt8(ascii: "\""): readText()
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                if depth == Self.depthMax {
                    replace(through: endOfNested(), by: Self.replacementText)
                } else {
                    depth += 1
                    index += 1
                }
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
                index += 1
            case UInt8(ascii: ","), UInt8(ascii: ":"), 0...0x20: index += 1
            default: readLiteral(isNested: depth > 0)
            }
        }
    }

    private mutating func replace(through end: Int, by replacement: some Sequence<UInt8>) {
        output += input[copiedCount..<index]
        output += replacement
        (copiedCount, index) = (end, end)
    }

    /// Returns the end of the array or object that begins at the current position.
    private func endOfNested() -> Int {
        var (depth, end, isText) = (0, index, false)
        while end < input.count {
            switch input[end] {
            case UInt8(ascii: "\""): isText.toggle()
            case UInt8(ascii: "\\") where isText: end += 1
            case UInt8(ascii: "["), UInt8(ascii: "{"): depth += isText ? 0 : 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= isText ? 0 : 1
            default: break
            }
            end += 1
            if depth == 0 { break }
        }
        return min(end, input.count)
    }

    /// Reads a number, `true`, `false` or `null`, or replaces an undefined literal.
    private mutating func readLiteral(isNested: Bool) {
        let literal = input[index...].prefix { byte in
            byte > 0x20 && !",:[]{}\"".utf8.contains(byte)
        }
        let isNumber =
            literal.first.map { $0 == UInt8(ascii: "-") || isDigit($0) } ?? false
            && literal.allSatisfy { isDigit($0) || "+-.eE".utf8.contains($0) }
        let isValue = isNumber || ["true", "false", "null"].contains { literal.elementsEqual($0.utf8) }
        if isValue || !isNested {
            index = literal.endIndex
        } else {
            replace(through: literal.endIndex, by: Self.replacementText)
        }
    }

    private func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    // MARK: Texts

    private static let replacementEscape = "\\ufffd".utf8
    /// Not `null`, which may be an expected value.
    private static let replacementText = "\"\\ufffd\"".utf8

    private mutating func readText() {
        index += 1
        while index < input.count {
            switch input[index] {
            case UInt8(ascii: "\""):
                index += 1
                return
            case UInt8(ascii: "\\"): readEscape()
            case 0: replace(through: index + 1, by: Self.replacementEscape)
            case let byte where byte < 0x20:
                let digits = String(byte, radix: 16)
                replace(through: index + 1, by: ("\\u00" + (byte < 0x10 ? "0" : "") + digits).utf8)
            case 0x20..<0x80: index += 1
            default: readScalar()
            }
        }
    }

    private mutating func readEscape() {
        guard index + 1 < input.count else {
            index = input.count
            return
        }
        guard input[index + 1] == UInt8(ascii: "u") else {
            if "\"\\/bfnrt".utf8.contains(input[index + 1]) {
                index += 2
            } else {
                replace(through: index + 1, by: Self.replacementEscape)
            }
            return
        }
        guard let unit = codeUnit(at: index) else {
            return replace(through: index + 1, by: Self.replacementEscape)
        }
        switch unit {
        case 0xD800..<0xDC00 where codeUnit(at: index + 6).map { (0xDC00..<0xE000).contains($0) } ?? false: index += 12
        case 0, 0xD800..<0xE000: replace(through: index + 6, by: Self.replacementEscape)
        default: index += 6
        }
    }

    /// Returns the code unit of the escape `\uXXXX` at `start`; `nil` if there is none.
    private func codeUnit(at start: Int) -> UInt16? {
        guard start + 6 <= input.count, input[start] == UInt8(ascii: "\\"), input[start + 1] == UInt8(ascii: "u") else {
            return nil
        }
        let digits = input[start + 2..<start + 6]
        guard digits.allSatisfy({ UInt8(ascii: "+") != $0 && UInt8(ascii: "-") != $0 }) else { return nil }
        return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    }

    /// Reads a scalar, or replaces a byte that is not part of one.
    private mutating func readScalar() {
        let (count, second) = WellFormedUTF8.sequence(from: input[index]) ?? (0, 0...0)
        let rest = input[index...].prefix(count).dropFirst()
        let isWhole =
            count > 0 && rest.count == count - 1 && rest.first.map(second.contains) ?? false
            && rest.allSatisfy { (0x80...0xBF).contains($0) }
        if isWhole {
            index += count
        } else {
            replace(through: index + 1, by: "\u{FFFD}".utf8)
        }
    }
}
