/// Validates and splits JSON as bytes, without decoding it.
///
/// Valid JSON can be stored and published: RFC 8259 in well-formed UTF-8, without `\u0000`, lone surrogates or
/// duplicate keys, with limits for numbers and nesting. Takes about 0.3 µs for 430 bytes.
///
/// PostgreSQL rejects `\u0000` and lone surrogates only when the transaction runs, which fails the whole batch. It
/// writes `1e300` as 301 digits, hence the limit of the exponent.
public enum JSONCheck {
    /// Maximum nesting depth of arrays and objects; the outermost value has depth 1.
    public static let depthMax = 32
    /// Maximum digits of a number, including those that its exponent adds when it is written without one.
    public static let numberDigitsMax = 104
    /// Maximum absolute value of a number's exponent.
    public static let numberExponentMax = 64
    /// Maximum number of members of the outermost object, unless the caller specifies another limit.
    public static let memberCountMax = 512

    /// Validates that `bytes` are one value that can be stored.
    ///
    /// - Throws: ``JSONError``, the first one detected.
    public static func check(_ bytes: [UInt8]) throws(JSONError) { try check(bytes.span) }

    /// Validates that `bytes` are one value that can be stored.
    ///
    /// - Throws: ``JSONError``, the first one detected.
    public static func check(_ bytes: borrowing Span<UInt8>) throws(JSONError) {
        var scanner = JSONScanner()
        scanner.skipBlanks(bytes)
        if scanner.offset < bytes.count, bytes[scanner.offset] == UInt8(ascii: "{") {
            var members = JSONMemberList()
            try scanner.scanObject(bytes, members: &members)
        } else {
            try scanner.scanValue(bytes, depth: 0)
        }
        try scanner.finish(bytes)
    }

    /// Validates that `bytes` are one object that can be stored, and returns the ranges of its members.
    ///
    /// - Parameter countMax: The maximum number of members.
    /// - Returns: The members in their order; their ranges are offsets into `bytes`.
    /// - Throws: ``JSONError``, the first one detected.
    public static func members(
        of bytes: [UInt8], countMax: Int = memberCountMax
    ) throws(JSONError) -> [JSONMember] {
        let span = bytes.span
        var scanner = JSONScanner()
        scanner.skipBlanks(span)
        guard scanner.offset < span.count, span[scanner.offset] == UInt8(ascii: "{") else {
            throw JSONError(.notAnObject, at: scanner.offset)
        }
        var list = JSONMemberList(countMax: countMax)
        try scanner.scanObject(span, members: &list)
        try scanner.finish(span)
        return list.members.map { JSONMember(key: JSONMember.text(bytes[$0.key]), keyRange: $0.key, value: $0.value) }
    }
}

extension JSONCheck {
    /// Maximum nesting depth of a file that an operator supplies.
    private static let fileDepthMax = 512

    /// Rejects duplicate keys in a file that is validated further by its reader.
    ///
    /// - Throws: ``JSONError`` with the path of the key.
    package static func checkKeys(ofFile bytes: [UInt8]) throws(JSONError) {
        let span = bytes.span
        var scanner = JSONScanner()
        scanner.depthMax = fileDepthMax
        scanner.skipBlanks(span)
        do throws(JSONError) { try scanner.scanValue(span, depth: 0) } catch {
            guard error.reason != .duplicateKey else { throw error }
        }
    }

    /// Validates that `bytes` are one array that can be stored, and returns the ranges of its elements.
    ///
    /// - Returns: The raw elements' offsets into `bytes`, in their order.
    /// - Throws: ``JSONError``; ``JSONError/Reason/unexpected`` if the value is not an array.
    public static func elements(of bytes: [UInt8]) throws(JSONError) -> [Range<Int>] {
        let span = bytes.span
        var scanner = JSONScanner()
        scanner.skipBlanks(span)
        let elements = try scanner.scanArray(span)
        try scanner.finish(span)
        return elements
    }
}
