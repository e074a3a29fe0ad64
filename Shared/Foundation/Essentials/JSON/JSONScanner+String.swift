extension JSONScanner {
    /// Scans a string with its quotes.
    mutating func scanString(_ bytes: borrowing Span<UInt8>) throws(JSONError) {
        advance()
        escapes = .none
        while true {
            skipPlainCharacters(bytes)
            let byte = try current(bytes)
            switch byte {
            case UInt8(ascii: "\""):
                advance()
                return
            case UInt8(ascii: "\\"): try scanEscape(bytes)
            case 0x00...0x1F: throw JSONError(.controlCharacter, at: offset)
            default: try scanMultibyte(bytes, lead: byte)
            }
        }
    }

    /// Skips plain ASCII characters eight bytes at a time: most bytes of JSON are skipped here.
    private mutating func skipPlainCharacters(_ bytes: borrowing Span<UInt8>) {
        let raw = unsafe bytes.bytes
        var index = offset
        while index <= bytes.count - 8 {
            let word = unsafe raw.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt64.self)
            let end = JSONWord.plainEnd(UInt64(littleEndian: word))
            guard end == 0 else {
                advance(by: index - offset + end.trailingZeroBitCount / 8)
                return
            }
            index &+= 8
        }
        while index < bytes.count {
            let byte = bytes[index]
            guard byte &- 0x20 < 0x60, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else { break }
            index += 1
        }
        advance(by: index - offset)
    }

    private mutating func scanEscape(_ bytes: borrowing Span<UInt8>) throws(JSONError) {
        let start = offset
        advance()
        let letter = try current(bytes)
        advance()
        switch UnicodeScalar(letter) {
        case "\"", "\\", "b", "f", "n", "r", "t":
            escapes = max(escapes, .short)
            return
        case "/":
            escapes = .other
            return
        case "u": escapes = .other
        default: throw JSONError(.malformedEscape, at: start)
        }
        let unit = try scanHexadecimal(bytes, of: start)
        switch unit {
        case 0: throw JSONError(.nullCharacter, at: start)
        case 0xDC00...0xDFFF: throw JSONError(.loneSurrogate, at: start)
        case 0xD800...0xDBFF: try scanLowSurrogate(bytes, of: start)
        default: return
        }
    }

    private mutating func scanLowSurrogate(_ bytes: borrowing Span<UInt8>, of start: Int) throws(JSONError) {
        guard offset + 1 < bytes.count, bytes[offset] == UInt8(ascii: "\\"), bytes[offset + 1] == UInt8(ascii: "u")
        else { throw JSONError(.loneSurrogate, at: start) }
        let low = offset
        advance(by: 2)
        guard (0xDC00...0xDFFF).contains(try scanHexadecimal(bytes, of: low)) else {
            throw JSONError(.loneSurrogate, at: start)
        }
    }

    private mutating func scanHexadecimal(
        _ bytes: borrowing Span<UInt8>, of start: Int
    ) throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = hexadecimalValue(of: try current(bytes)) else {
                throw JSONError(.malformedEscape, at: start)
            }
            unit = unit << 4 | UInt16(digit)
            advance()
        }
        return unit
    }

    /// Scans one character of two to four bytes.
    private mutating func scanMultibyte(_ bytes: borrowing Span<UInt8>, lead: UInt8) throws(JSONError) {
        guard let (count, second) = WellFormedUTF8.sequence(from: lead) else {
            throw JSONError(.malformedUTF8, at: offset)
        }
        guard offset + count <= bytes.count, second.contains(bytes[offset + 1]) else {
            throw JSONError(.malformedUTF8, at: offset)
        }
        for index in 2..<max(count, 2) where bytes[offset + index] & 0xC0 != 0x80 {
            throw JSONError(.malformedUTF8, at: offset)
        }
        advance(by: count)
    }
}

/// Characters of several bytes in UTF-8. Source: Unicode Standard, table 3-7.
package enum WellFormedUTF8 {
    /// Returns the length of the character that begins with this byte and the range of its second byte; `nil` if the
    /// byte begins no character of several bytes.
    @inline(__always)
    package static func sequence(from lead: UInt8) -> (count: Int, second: ClosedRange<UInt8>)? {
        switch lead {
        case 0xC2...0xDF: (2, 0x80...0xBF)
        case 0xE0: (3, 0xA0...0xBF)
        case 0xED: (3, 0x80...0x9F)
        case 0xE1...0xEF: (3, 0x80...0xBF)
        case 0xF0: (4, 0x90...0xBF)
        case 0xF1...0xF3: (4, 0x80...0xBF)
        case 0xF4: (4, 0x80...0x8F)
        default: nil
        }
    }
}

/// The escapes of a string. Canonical strings (``JSONCanonical``) have only the short escapes of characters that must
/// be escaped.
enum JSONEscapes: UInt8, Comparable {
    case none
    case short
    case other

    static func < (left: JSONEscapes, right: JSONEscapes) -> Bool { left.rawValue < right.rawValue }
}

/// Eight bytes of JSON in little-endian order.
enum JSONWord {
    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// The lowest set bit is in the first byte that is a quote, a backslash, a control character or not ASCII; 0 if
    /// there is none. Higher bits may be wrong, because a subtraction that underflows borrows from the next byte.
    @inline(__always)
    static func plainEnd(_ word: UInt64) -> UInt64 {
        let isQuote = (word ^ (ones &* UInt64(UInt8(ascii: "\"")))) &- ones
        let isBackslash = (word ^ (ones &* UInt64(UInt8(ascii: "\\")))) &- ones
        let isControl = word &- (ones &* 0x20)
        return (isQuote | isBackslash | isControl | word) & (ones &* 0x80)
    }
}
