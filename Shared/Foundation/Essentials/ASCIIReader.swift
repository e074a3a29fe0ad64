/// A strict reader of fixed-width digits and separators; Foundation's formatters are lenient.
struct ASCIIReader {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = Substring(text).utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    /// Reads exactly `count` decimal digits as a number; returns `nil` and reads nothing if they are not next.
    mutating func digits(_ count: Int) -> Int? {
        var value = 0
        var digitCount = 0
        for byte in rest.prefix(count) {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
            digitCount += 1
        }
        guard digitCount == count else { return nil }
        rest = rest.dropFirst(count)
        return value
    }

    /// Reads one of `characters`; returns false and reads nothing if none is next.
    mutating func skip(_ characters: String) -> Bool { next(of: characters) != nil }

    /// Reads and returns the next character if it is one of `characters`.
    mutating func next(of characters: String) -> UInt8? {
        guard let byte = rest.first, characters.utf8.contains(byte) else { return nil }
        rest = rest.dropFirst()
        return byte
    }
}

/// Returns the value of a hexadecimal digit in either case; `nil` for any other byte.
@inline(__always)
func hexadecimalValue(of byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
}

/// Formats a number in decimal digits, padded with zeros on the left to `width`.
package func padded(_ value: Int, to width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}
