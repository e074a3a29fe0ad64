public import FoundationEssentials

extension UUID {
    /// The id in lower case, as in PostgreSQL and RFC 9562 §4; Foundation writes upper case.
    public var text: String {
        var text: [UInt8] = []
        text.reserveCapacity(36)
        appendText(to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends ``text`` as ASCII.
    package func appendText(to bytes: inout [UInt8]) {
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? value + 48 : value + 87 }
        unsafe withUnsafeBytes(of: uuid) { octets in
            for index in 0..<16 {
                if index == 4 || index == 6 || index == 8 || index == 10 { bytes.append(UInt8(ascii: "-")) }
                let octet = unsafe octets[index]
                bytes.append(digit(octet >> 4))
                bytes.append(digit(octet & 15))
            }
        }
    }

    /// Parses 36 characters: hexadecimal digits in either case, with hyphens at the standard positions. Foundation's
    /// `UUID(uuidString:)` uses `sscanf`, which is many times slower and accepts blanks and signs as digits.
    package init?(ascii bytes: RawSpan) {
        guard bytes.byteCount == 36 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        var digits = 0
        for index in 0..<36 {
            let byte = unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard let digit = hexadecimalValue(of: byte) else { return nil }
            if digits < 16 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
            digits += 1
        }
        self.init(high: high, low: low)
    }

    /// Parses a text.
    package init?(ascii text: some StringProtocol) {
        let text = String(text)
        unsafe self.init(ascii: text.utf8.span.bytes)
    }

    private init(high: UInt64, low: UInt64) {
        func byte(_ value: UInt64, _ index: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: value >> (56 - 8 * index)) }
        self.init(
            uuid: (
                byte(high, 0), byte(high, 1), byte(high, 2), byte(high, 3), byte(high, 4), byte(high, 5), byte(high, 6),
                byte(high, 7), byte(low, 0), byte(low, 1), byte(low, 2), byte(low, 3), byte(low, 4), byte(low, 5),
                byte(low, 6), byte(low, 7)
            ))
    }
}

extension Decoder {
    /// Creates the error for a value that its type does not accept.
    package func corrupted(_ reason: String) -> DecodingError {
        .dataCorrupted(DecodingError.Context(codingPath: codingPath, debugDescription: reason))
    }
}
