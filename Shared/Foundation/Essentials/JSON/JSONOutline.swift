/// The byte ranges of a JSON text's members or elements, found by quotes and brackets alone.
///
/// Values are not validated, so that each can be validated and rejected on its own; ``JSONObject`` validates.
package struct JSONOutline {
    private let bytes: [UInt8]
    private let end: Int
    private var offset: Int

    private init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        offset = range.lowerBound
        end = range.upperBound
    }

    /// Returns the members of the object that fills `range`; keys are the bytes between their quotes.
    ///
    /// - Returns: `nil` if it is not an object, or has more than `countMax` members.
    package static func members(
        of bytes: [UInt8], in range: Range<Int>, countMax: Int
    ) -> [(key: ArraySlice<UInt8>, value: Range<Int>)]? {
        var outline = JSONOutline(bytes, range)
        var members: [(key: ArraySlice<UInt8>, value: Range<Int>)] = []
        let isComplete = outline.list(from: UInt8(ascii: "{"), to: UInt8(ascii: "}"), countMax: countMax) { outline in
            let start = outline.offset
            guard outline.current == UInt8(ascii: "\""), outline.skipString() else { return false }
            let key = bytes[start + 1..<outline.offset - 1]
            outline.skipBlanks()
            guard outline.take(UInt8(ascii: ":")) else { return false }
            outline.skipBlanks()
            guard let value = outline.skipValue() else { return false }
            members.append((key, value))
            return true
        }
        return isComplete ? members : nil
    }

    /// Returns the elements of the array that fills `range`.
    ///
    /// - Returns: `nil` if it is not an array, or has more than `countMax` elements.
    package static func elements(of bytes: [UInt8], in range: Range<Int>, countMax: Int) -> [Range<Int>]? {
        var outline = JSONOutline(bytes, range)
        var elements: [Range<Int>] = []
        let isComplete = outline.list(from: UInt8(ascii: "["), to: UInt8(ascii: "]"), countMax: countMax) { outline in
            guard let value = outline.skipValue() else { return false }
            elements.append(value)
            return true
        }
        return isComplete ? elements : nil
    }

    private mutating func list(
        from opening: UInt8, to closing: UInt8, countMax: Int, _ element: (inout JSONOutline) -> Bool
    ) -> Bool {
        skipBlanks()
        guard take(opening) else { return false }
        skipBlanks()
        var count = 0
        if !take(closing) {
            while true {
                count += 1
                guard count <= countMax, element(&self) else { return false }
                skipBlanks()
                if take(closing) { break }
                guard take(UInt8(ascii: ",")) else { return false }
                skipBlanks()
            }
        }
        skipBlanks()
        return offset == end
    }

    private var current: UInt8? { offset < end ? bytes[offset] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        offset += 1
        return true
    }

    private mutating func skipBlanks() {
        while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { offset += 1 }
    }

    private mutating func skipString() -> Bool {
        offset += 1
        while let byte = current {
            offset += byte == UInt8(ascii: "\\") ? 2 : 1
            if byte == UInt8(ascii: "\"") { return true }
        }
        return false
    }

    private mutating func skipValue() -> Range<Int>? {
        let start = offset
        var depth = 0
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                guard skipString() else { return nil }
                if depth == 0 { return start..<offset }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                offset += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return offset > start ? start..<offset : nil }
                depth -= 1
                offset += 1
                if depth == 0 { return start..<offset }
            case UInt8(ascii: ","), 0x20, 0x0A, 0x0D, 0x09:
                if depth == 0 { return offset > start ? start..<offset : nil }
                offset += 1
            default: offset += 1
            }
        }
        return offset > start && depth == 0 ? start..<min(offset, end) : nil
    }
}
