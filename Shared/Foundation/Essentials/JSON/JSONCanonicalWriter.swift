/// Writes validated JSON in the canonical form.
struct JSONCanonicalWriter {
    /// The bytes written up to now.
    private(set) var bytes: [UInt8] = []
    private var offset = 0

    /// A member of the object that is being written, as ranges of the written bytes.
    private struct Member {
        let key: Range<Int>
        let end: Int
        /// The key's unescaped characters; `nil` if they equal the written ones.
        let text: [UInt8]?
    }

    init(capacity: Int) { bytes.reserveCapacity(capacity) }

    /// Writes `json`, which must pass ``JSONCheck``.
    mutating func write(_ json: borrowing Span<UInt8>) {
        skipBlanks(json)
        value(json)
    }

    private mutating func value(_ json: borrowing Span<UInt8>) {
        switch json[offset] {
        case UInt8(ascii: "{"): object(json)
        case UInt8(ascii: "["): array(json)
        case UInt8(ascii: "\""): string(json)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): number(json)
        default:
            while offset < json.count, json[offset] >= UInt8(ascii: "a"), json[offset] <= UInt8(ascii: "z") {
                bytes.append(json[offset])
                offset += 1
            }
        }
    }

    private mutating func array(_ json: borrowing Span<UInt8>) {
        bytes.append(UInt8(ascii: "["))
        var isFirst = true
        while next(json) != UInt8(ascii: "]") {
            if !isFirst { bytes.append(contentsOf: ", ".utf8) }
            isFirst = false
            value(json)
        }
        offset += 1
        bytes.append(UInt8(ascii: "]"))
    }

    private mutating func object(_ json: borrowing Span<UInt8>) {
        bytes.append(UInt8(ascii: "{"))
        let start = bytes.count
        var members: [Member] = []
        var isOrdered = true
        while next(json) != UInt8(ascii: "}") {
            if !members.isEmpty { bytes.append(contentsOf: ", ".utf8) }
            let member = member(json)
            if let last = members.last, !isBefore(last, member) { isOrdered = false }
            members.append(member)
        }
        offset += 1
        if !isOrdered { reorder(members, from: start) }
        bytes.append(UInt8(ascii: "}"))
    }

    private mutating func member(_ json: borrowing Span<UInt8>) -> Member {
        let start = bytes.count + 1
        string(json)
        let key = start..<(bytes.count - 1)
        skipBlanks(json)
        offset += 1
        skipBlanks(json)
        bytes.append(contentsOf: ": ".utf8)
        value(json)
        let hasEscape = JSONKey.hasEscape(key, bytes.span)
        return Member(key: key, end: bytes.count, text: hasEscape ? Array(JSONMember.text(bytes[key]).utf8) : nil)
    }

    /// The first byte of the next element, or the end of the list.
    private mutating func next(_ json: borrowing Span<UInt8>) -> UInt8 {
        // Skip the opening bracket or the comma, then blanks.
        if json[offset] == UInt8(ascii: "[") || json[offset] == UInt8(ascii: "{") || json[offset] == UInt8(ascii: ",") {
            offset += 1
        }
        skipBlanks(json)
        if json[offset] == UInt8(ascii: ",") {
            offset += 1
            skipBlanks(json)
        }
        return json[offset]
    }

    private func isBefore(_ left: Member, _ right: Member) -> Bool {
        if left.text == nil, right.text == nil { return JSONKey.isBefore(left.key, right.key, bytes.span) }
        let (a, b) = (left.text ?? Array(bytes[left.key]), right.text ?? Array(bytes[right.key]))
        return a.count != b.count ? a.count < b.count : a.lexicographicallyPrecedes(b)
    }

    /// Rewrites the members from `start` in their order.
    private mutating func reorder(_ members: [Member], from start: Int) {
        let written = bytes[start...]
        let order = members.sorted { isBefore($0, $1) }
        var ordered: [UInt8] = []
        ordered.reserveCapacity(written.count)
        for member in order {
            if !ordered.isEmpty { ordered.append(contentsOf: ", ".utf8) }
            ordered.append(contentsOf: written[(member.key.lowerBound - 1)..<member.end])
        }
        bytes.replaceSubrange(start..., with: ordered)
    }

    private mutating func skipBlanks(_ json: borrowing Span<UInt8>) {
        while offset < json.count, json[offset] <= 0x20 { offset += 1 }
    }
}

// MARK: Strings and numbers

extension JSONCanonicalWriter {
    private mutating func string(_ json: borrowing Span<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        offset += 1
        while json[offset] != UInt8(ascii: "\"") {
            if json[offset] == UInt8(ascii: "\\") {
                escape(json)
            } else {
                bytes.append(json[offset])
                offset += 1
            }
        }
        bytes.append(UInt8(ascii: "\""))
        offset += 1
    }

    private mutating func escape(_ json: borrowing Span<UInt8>) {
        let letter = json[offset + 1]
        offset += 2
        switch UnicodeScalar(letter) {
        case "/": bytes.append(letter)
        case "u":
            var value = unit(json)
            if (0xD800..<0xDC00).contains(value) {
                offset += 2
                value = 0x10000 + (value - 0xD800) << 10 + (unit(json) - 0xDC00)
            }
            append(UnicodeScalar(value) ?? "\u{FFFD}")
        default: bytes.append(contentsOf: [UInt8(ascii: "\\"), letter])
        }
    }

    /// The four hexadecimal digits that come next.
    private mutating func unit(_ json: borrowing Span<UInt8>) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            unit = unit << 4 | UInt32(hexadecimalValue(of: json[offset]) ?? 0)
            offset += 1
        }
        return unit
    }

    private mutating func append(_ scalar: UnicodeScalar) {
        switch scalar {
        case "\"": bytes.append(contentsOf: #"\""#.utf8)
        case "\\": bytes.append(contentsOf: #"\\"#.utf8)
        case "\u{08}": bytes.append(contentsOf: #"\b"#.utf8)
        case "\u{0C}": bytes.append(contentsOf: #"\f"#.utf8)
        case "\n": bytes.append(contentsOf: #"\n"#.utf8)
        case "\r": bytes.append(contentsOf: #"\r"#.utf8)
        case "\t": bytes.append(contentsOf: #"\t"#.utf8)
        case "\u{00}"..."\u{1F}":
            bytes.append(contentsOf: (scalar.value < 16 ? #"\u000"# : #"\u00"#).utf8)
            bytes.append(contentsOf: String(scalar.value, radix: 16).utf8)
        default: bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        }
    }

    /// Writes a number without its exponent, which moves the decimal point.
    private mutating func number(_ json: borrowing Span<UInt8>) {
        let isNegative = json[offset] == UInt8(ascii: "-")
        if isNegative { offset += 1 }
        let start = offset
        var (digits, fractionCount, isFraction, isZero): ([UInt8], Int, Bool, Bool) = ([], 0, false, true)
        while offset < json.count {
            let byte = json[offset]
            if byte == UInt8(ascii: ".") {
                isFraction = true
            } else if byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") {
                digits.append(byte)
                if isFraction { fractionCount += 1 }
                if byte != UInt8(ascii: "0") { isZero = false }
            } else {
                break
            }
            offset += 1
        }
        if isNegative, !isZero { bytes.append(UInt8(ascii: "-")) }
        guard offset < json.count, json[offset] | 0x20 == UInt8(ascii: "e") else {
            for index in start..<offset { bytes.append(json[index]) }
            return
        }
        let exponent = exponent(json)
        let scale = max(0, fractionCount - exponent)
        // The digits before the decimal point, shifted by the exponent: at least one, without leading zeros.
        let zerosAfter = max(0, exponent - fractionCount)
        digits.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: zerosAfter))
        if digits.count <= scale {
            digits.insert(contentsOf: repeatElement(UInt8(ascii: "0"), count: scale + 1 - digits.count), at: 0)
        }
        let whole = digits.dropLast(scale).drop { $0 == UInt8(ascii: "0") }
        if whole.isEmpty { bytes.append(UInt8(ascii: "0")) } else { bytes.append(contentsOf: whole) }
        guard scale > 0 else { return }
        bytes.append(UInt8(ascii: "."))
        bytes.append(contentsOf: digits.suffix(scale))
    }

    private mutating func exponent(_ json: borrowing Span<UInt8>) -> Int {
        offset += 1
        let isNegative = json[offset] == UInt8(ascii: "-")
        if isNegative || json[offset] == UInt8(ascii: "+") { offset += 1 }
        var exponent = 0
        while offset < json.count, json[offset] >= UInt8(ascii: "0"), json[offset] <= UInt8(ascii: "9") {
            exponent = exponent * 10 + Int(json[offset] - UInt8(ascii: "0"))
            offset += 1
        }
        return isNegative ? -exponent : exponent
    }
}
