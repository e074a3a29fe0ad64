/// Whole numbers in all forms that JSON allows.
public enum JSONNumber {
    /// Parses a raw JSON number as a whole number: `3600`, `3600.0` and `3.6e3` are equal (RFC 8259 §6 has one kind of
    /// number).
    ///
    /// - Returns: `nil` if the value is not a number, is not whole, or is out of the type's range.
    public static func whole<Number: FixedWidthInteger>(
        _ value: ArraySlice<UInt8>, as type: Number.Type = Number.self
    ) -> Number? {
        guard let first = value.first, first == UInt8(ascii: "-") || isDigit(first),
            let plain = try? JSONCanonical.bytes(of: Array(value))
        else { return nil }
        let whole = plain.prefix { $0 != UInt8(ascii: ".") }
        guard plain.dropFirst(whole.count + 1).allSatisfy({ $0 == UInt8(ascii: "0") }) else { return nil }
        return Number(String(decoding: whole, as: UTF8.self))
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
