/// The canonical form of JSON, in which equal values have equal bytes: PostgreSQL's text form of `jsonb` (`jsonb_out`;
/// source: `jsonb.c`, `jsonb_util.c` and `numeric.c`).
///
/// The members of an object are ordered by the length of their keys in UTF-8, then by their bytes. The separators are
/// `": "` and `", "`. Only quotes, backslashes and control characters are escaped. A number is written without an
/// exponent and keeps the digits after its decimal point.
public enum JSONCanonical {
    /// Returns `json` in the canonical form.
    ///
    /// - Throws: ``JSONError``, as from ``JSONCheck``.
    public static func bytes(of json: [UInt8]) throws(JSONError) -> [UInt8] {
        if isCanonical(json.span) { return json }
        try JSONCheck.check(json)
        var writer = JSONCanonicalWriter(capacity: json.count + json.count / 8)
        writer.write(json.span)
        return writer.bytes
    }

    /// Whether `bytes` are one JSON value that passes ``JSONCheck`` and is in the canonical form. Returns `false` for
    /// rare canonical values: keys with escapes, and control characters without a short escape.
    public static func isCanonical(_ bytes: borrowing Span<UInt8>) -> Bool {
        var scanner = JSONScanner()
        do throws(JSONError) {
            guard try scanner.scanCanonical(bytes, depth: 0) else { return false }
            return scanner.offset == bytes.count
        } catch {
            return false
        }
    }
}

extension JSONScanner {
    /// Scans the value that begins here; stops as soon as it is not canonical.
    fileprivate mutating func scanCanonical(
        _ bytes: borrowing Span<UInt8>, depth: Int
    ) throws(JSONError) -> Bool {
        switch try current(bytes) {
        case UInt8(ascii: "\""):
            // Canonical if its only escapes are the short ones of characters that must be escaped.
            try scanString(bytes)
            return escapes != .other
        case UInt8(ascii: "{"): return try scanCanonicalObject(bytes, depth: depth + 1)
        case UInt8(ascii: "["): return try scanCanonicalArray(bytes, depth: depth + 1)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try scanPlainNumber(bytes)
        default:
            try scanValue(bytes, depth: depth)
            return true
        }
    }

    private mutating func scanCanonicalObject(
        _ bytes: borrowing Span<UInt8>, depth: Int
    ) throws(JSONError) -> Bool {
        guard depth <= JSONCheck.depthMax else { return false }
        advance()
        if try current(bytes) == UInt8(ascii: "}") {
            advance()
            return true
        }
        var last = 0..<0
        var count = 0
        while true {
            let start = offset + 1
            guard try current(bytes) == UInt8(ascii: "\"") else { return false }
            try scanString(bytes)
            let key = start..<(offset - 1)
            guard escapes == .none, count == 0 || JSONKey.isBefore(last, key, bytes) else { return false }
            count += 1
            guard depth > 1 || count <= JSONCheck.memberCountMax else { return false }
            last = key
            guard isNext(":", " ", bytes), try scanCanonical(bytes, depth: depth) else { return false }
            if try current(bytes) == UInt8(ascii: "}") {
                advance()
                return true
            }
            guard isNext(",", " ", bytes) else { return false }
        }
    }

    private mutating func scanCanonicalArray(
        _ bytes: borrowing Span<UInt8>, depth: Int
    ) throws(JSONError) -> Bool {
        guard depth <= JSONCheck.depthMax else { return false }
        advance()
        if try current(bytes) == UInt8(ascii: "]") {
            advance()
            return true
        }
        while true {
            guard try scanCanonical(bytes, depth: depth) else { return false }
            if try current(bytes) == UInt8(ascii: "]") {
                advance()
                return true
            }
            guard isNext(",", " ", bytes) else { return false }
        }
    }

    /// Scans a number; canonical if it has no exponent and is not negative zero.
    private mutating func scanPlainNumber(_ bytes: borrowing Span<UInt8>) throws(JSONError) -> Bool {
        let start = offset
        try scanNumber(bytes)
        var isZero = true
        for index in start..<offset {
            switch bytes[index] {
            case UInt8(ascii: "e"), UInt8(ascii: "E"): return false
            case UInt8(ascii: "1")...UInt8(ascii: "9"): isZero = false
            default: break
            }
        }
        return !(isZero && bytes[start] == UInt8(ascii: "-"))
    }

    /// Skips these two bytes if they are next, and returns whether they were.
    private mutating func isNext(_ first: UnicodeScalar, _ second: UnicodeScalar, _ bytes: borrowing Span<UInt8>)
        -> Bool
    {
        guard offset + 1 < bytes.count, bytes[offset] == UInt8(ascii: first),
            bytes[offset + 1] == UInt8(ascii: second)
        else { return false }
        advance(by: 2)
        return true
    }
}

/// The order of keys: by length, then by bytes.
enum JSONKey {
    static func isBefore(_ left: Range<Int>, _ right: Range<Int>, _ bytes: borrowing Span<UInt8>) -> Bool {
        if left.count != right.count { return left.count < right.count }
        for index in 0..<left.count {
            let (a, b) = (bytes[left.lowerBound + index], bytes[right.lowerBound + index])
            if a != b { return a < b }
        }
        return false
    }

    static func hasEscape(_ key: Range<Int>, _ bytes: borrowing Span<UInt8>) -> Bool {
        for offset in key where bytes[offset] == UInt8(ascii: "\\") { return true }
        return false
    }
}
