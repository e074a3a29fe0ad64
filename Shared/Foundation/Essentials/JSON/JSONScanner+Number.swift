extension JSONScanner {
    /// Scans a number (RFC 8259 §6) within the limits of ``JSONCheck``.
    mutating func scanNumber(_ bytes: borrowing Span<UInt8>) throws(JSONError) {
        let start = offset
        if bytes[offset] == UInt8(ascii: "-") { advance() }
        let leading = offset < bytes.count ? bytes[offset] : 0
        var digitCount = try scanDigits(bytes)
        guard leading != UInt8(ascii: "0") || digitCount == 1 else { throw JSONError(.malformedNumber, at: start) }
        if isNext(UInt8(ascii: "."), bytes) {
            advance()
            digitCount += try scanDigits(bytes)
        }
        guard digitCount <= JSONCheck.numberDigitsMax else { throw JSONError(.numberTooLarge, at: start) }
        guard isNext(UInt8(ascii: "e"), bytes) || isNext(UInt8(ascii: "E"), bytes) else { return }
        advance()
        if isNext(UInt8(ascii: "+"), bytes) || isNext(UInt8(ascii: "-"), bytes) { advance() }
        let exponent = try scanExponent(bytes, of: start)
        guard digitCount + exponent <= JSONCheck.numberDigitsMax else { throw JSONError(.numberTooLarge, at: start) }
    }

    /// - Returns: The exponent's absolute value.
    private mutating func scanExponent(
        _ bytes: borrowing Span<UInt8>, of start: Int
    ) throws(JSONError) -> Int {
        let first = offset
        _ = try scanDigits(bytes)
        var exponent = 0
        for index in first..<offset {
            exponent = exponent * 10 + Int(bytes[index] - UInt8(ascii: "0"))
            guard exponent <= JSONCheck.numberExponentMax else { throw JSONError(.numberTooLarge, at: start) }
        }
        return exponent
    }

    /// Scans one or more digits and returns their number.
    private mutating func scanDigits(_ bytes: borrowing Span<UInt8>) throws(JSONError) -> Int {
        let start = offset
        while offset < bytes.count, bytes[offset] &- UInt8(ascii: "0") < 10 { advance() }
        guard offset > start else {
            throw JSONError(offset < bytes.count ? .malformedNumber : .endsEarly, at: offset)
        }
        return offset - start
    }

    private func isNext(_ byte: UInt8, _ bytes: borrowing Span<UInt8>) -> Bool {
        offset < bytes.count && bytes[offset] == byte
    }
}
