/// Scans JSON bytes once, from left to right. Its only state is the offset and the last scanned token.
struct JSONScanner {
    private(set) var offset = 0
    /// Maximum nesting depth of values.
    var depthMax = JSONCheck.depthMax
    /// The escapes of the most recently scanned string.
    var escapes = JSONEscapes.none
    /// The keys of the nested objects being scanned; the innermost object's come last.
    var nestedKeys: [Range<Int>] = []

    mutating func skipBlanks(_ bytes: borrowing Span<UInt8>) {
        while offset < bytes.count {
            switch bytes[offset] {
            case 0x20, 0x0A, 0x0D, 0x09: offset += 1
            default: return
            }
        }
    }

    /// Throws if anything except blanks follows.
    mutating func finish(_ bytes: borrowing Span<UInt8>) throws(JSONError) {
        skipBlanks(bytes)
        guard offset == bytes.count else { throw JSONError(.trailing, at: offset) }
    }

    /// Scans the outermost object and collects its members.
    mutating func scanObject(
        _ bytes: borrowing Span<UInt8>, members: inout JSONMemberList
    ) throws(JSONError) {
        offset += 1
        skipBlanks(bytes)
        if try take(UInt8(ascii: "}"), bytes) { return }
        while true {
            let key = try scanKey(bytes)
            try members.checkIsNew(key, bytes)
            let start = offset
            do { try scanValue(bytes, depth: 1) } catch { throw error.inside(key, bytes) }
            members.append(key: key, value: start..<offset)
            if try endsList(with: UInt8(ascii: "}"), bytes) { return }
        }
    }

    /// Scans the outermost array and collects its elements.
    mutating func scanArray(_ bytes: borrowing Span<UInt8>) throws(JSONError) -> [Range<Int>] {
        guard try take(UInt8(ascii: "["), bytes) else { throw JSONError(.unexpected, at: offset) }
        skipBlanks(bytes)
        var elements: [Range<Int>] = []
        if try take(UInt8(ascii: "]"), bytes) { return elements }
        while true {
            let start = offset
            do { try scanValue(bytes, depth: 1) } catch { throw error.inside(elements.count) }
            elements.append(start..<offset)
            if try endsList(with: UInt8(ascii: "]"), bytes) { return elements }
        }
    }

    /// Scans the value that begins here; `depth` is the number of enclosing arrays and objects.
    mutating func scanValue(_ bytes: borrowing Span<UInt8>, depth: Int) throws(JSONError) {
        switch try current(bytes) {
        case UInt8(ascii: "\""): try scanString(bytes)
        case UInt8(ascii: "{"): try scanNested(bytes, depth: depth + 1, isObject: true)
        case UInt8(ascii: "["): try scanNested(bytes, depth: depth + 1, isObject: false)
        case UInt8(ascii: "t"): try scanWord("true", bytes)
        case UInt8(ascii: "f"): try scanWord("false", bytes)
        case UInt8(ascii: "n"): try scanWord("null", bytes)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try scanNumber(bytes)
        default: throw JSONError(.unexpected, at: offset)
        }
    }

    private mutating func scanNested(
        _ bytes: borrowing Span<UInt8>, depth: Int, isObject: Bool
    ) throws(JSONError) {
        guard depth <= depthMax else { throw JSONError(.nestedTooDeep, at: offset) }
        offset += 1
        skipBlanks(bytes)
        if isObject { try scanMembers(bytes, depth: depth) } else { try scanElements(bytes, depth: depth) }
    }

    private mutating func scanMembers(_ bytes: borrowing Span<UInt8>, depth: Int) throws(JSONError) {
        if try take(UInt8(ascii: "}"), bytes) { return }
        let first = nestedKeys.count
        repeat {
            let key = try scanKey(bytes)
            nestedKeys.append(key)
            do { try scanValue(bytes, depth: depth) } catch { throw error.inside(key, bytes) }
        } while try !endsList(with: UInt8(ascii: "}"), bytes)
        try JSONMemberList.checkAreDistinct(nestedKeys[first...], bytes)
        nestedKeys.removeSubrange(first...)
    }

    private mutating func scanElements(_ bytes: borrowing Span<UInt8>, depth: Int) throws(JSONError) {
        if try take(UInt8(ascii: "]"), bytes) { return }
        var index = 0
        repeat {
            do { try scanValue(bytes, depth: depth) } catch { throw error.inside(index) }
            index += 1
        } while try !endsList(with: UInt8(ascii: "]"), bytes)
    }

    /// Scans `"key" :` and the blanks after it.
    private mutating func scanKey(_ bytes: borrowing Span<UInt8>) throws(JSONError) -> Range<Int> {
        guard try current(bytes) == UInt8(ascii: "\"") else { throw JSONError(.unexpected, at: offset) }
        let start = offset + 1
        try scanString(bytes)
        let key = start..<(offset - 1)
        skipBlanks(bytes)
        guard try take(UInt8(ascii: ":"), bytes) else { throw JSONError(.unexpected, at: offset) }
        skipBlanks(bytes)
        return key
    }

    /// Scans the delimiter after an element: `end`, or a comma and the blanks before the next element.
    private mutating func endsList(with end: UInt8, _ bytes: borrowing Span<UInt8>) throws(JSONError) -> Bool {
        skipBlanks(bytes)
        if try take(end, bytes) { return true }
        guard try take(UInt8(ascii: ","), bytes) else { throw JSONError(.unexpected, at: offset) }
        skipBlanks(bytes)
        return false
    }

    private mutating func scanWord(_ word: StaticString, _ bytes: borrowing Span<UInt8>) throws(JSONError) {
        for index in 0..<word.utf8CodeUnitCount {
            let expected = unsafe word.utf8Start[index]
            guard try current(bytes) == expected else { throw JSONError(.unexpected, at: offset) }
            offset += 1
        }
    }

    func current(_ bytes: borrowing Span<UInt8>) throws(JSONError) -> UInt8 {
        guard offset < bytes.count else { throw JSONError(.endsEarly, at: offset) }
        return bytes[offset]
    }

    private mutating func take(_ byte: UInt8, _ bytes: borrowing Span<UInt8>) throws(JSONError) -> Bool {
        guard try current(bytes) == byte else { return false }
        offset += 1
        return true
    }

    mutating func advance(by count: Int = 1) { offset += count }
}
