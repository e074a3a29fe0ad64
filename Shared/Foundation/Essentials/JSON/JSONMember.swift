/// One member of an object, as ranges into the object's bytes.
public struct JSONMember: Equatable, Sendable {
    /// The key without quotes and escapes.
    public let key: String
    /// The range of the key's characters, without the quotes.
    public let keyRange: Range<Int>
    /// The range of the raw value, without surrounding blanks.
    public let value: Range<Int>

    /// Decodes the characters between the quotes of a validated JSON string.
    static func text(_ characters: ArraySlice<UInt8>) -> String {
        guard characters.contains(UInt8(ascii: "\\")) else { return String(decoding: characters, as: UTF8.self) }
        var units: [UInt16] = []
        var rest = characters
        while let byte = rest.first {
            if byte == UInt8(ascii: "\\") {
                rest.removeFirst()
                units.append(escaped(&rest))
            } else {
                let run = rest.prefix { $0 != UInt8(ascii: "\\") }
                units.append(contentsOf: String(decoding: run, as: UTF8.self).utf16)
                rest = rest.dropFirst(run.count)
            }
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// Decodes the characters of a key or string in the scanned bytes.
    static func text(_ range: Range<Int>, _ bytes: borrowing Span<UInt8>) -> String {
        var copy: [UInt8] = []
        for offset in range { copy.append(bytes[offset]) }
        return text(copy[...])
    }

    /// The UTF-16 unit of the escape sequence after its backslash (RFC 8259 §7).
    private static func escaped(_ rest: inout ArraySlice<UInt8>) -> UInt16 {
        let letter = rest.popFirst() ?? UInt8(ascii: "\\")
        switch UnicodeScalar(letter) {
        case "b": return 0x08
        case "f": return 0x0C
        case "n": return 0x0A
        case "r": return 0x0D
        case "t": return 0x09
        case "u":
            let digits = String(decoding: rest.prefix(4), as: UTF8.self)
            rest = rest.dropFirst(4)
            return UInt16(digits, radix: 16) ?? 0xFFFD
        default: return UInt16(letter)
        }
    }
}

/// The members of the outermost object scanned up to now.
struct JSONMemberList {
    private(set) var members: [(key: Range<Int>, value: Range<Int>)] = []
    /// The unescaped keys; filled only when pairwise comparison of bytes does not suffice.
    private var texts: Set<[Unicode.Scalar]> = []
    private let countMax: Int

    init(countMax: Int = JSONCheck.memberCountMax) {
        self.countMax = countMax
        members.reserveCapacity(16)
    }

    /// Throws if the object already has the key.
    ///
    /// Few keys are compared as bytes. Many are looked up in a set: pairwise comparison is quadratic. If any key has
    /// escapes, all are looked up: `"a"` and `"\u0061"` are the same key.
    mutating func checkIsNew(_ key: Range<Int>, _ bytes: borrowing Span<UInt8>) throws(JSONError) {
        guard members.count < countMax else { throw JSONError(.tooManyMembers, at: key.lowerBound) }
        var isNew = true
        if texts.isEmpty && members.count < Self.comparedAsBytesMax && !JSONKey.hasEscape(key, bytes) {
            for member in members where Self.areEqual(member.key, key, bytes) { isNew = false }
        } else {
            if texts.isEmpty { for member in members { texts.insert(Self.text(member.key, bytes)) } }
            isNew = texts.insert(Self.text(key, bytes)).inserted
        }
        guard isNew else { throw JSONError(.duplicateKey, at: key.lowerBound).inside(key, bytes) }
    }

    /// Throws for duplicate keys of a nested object, compared like those of the outermost object.
    static func checkAreDistinct(
        _ keys: ArraySlice<Range<Int>>, _ bytes: borrowing Span<UInt8>
    ) throws(JSONError) {
        guard keys.count > comparedAsBytesMax || keys.contains(where: { JSONKey.hasEscape($0, bytes) }) else {
            for (index, key) in keys.enumerated() {
                for other in keys.prefix(index) where areEqual(other, key, bytes) {
                    throw JSONError(.duplicateKey, at: key.lowerBound).inside(key, bytes)
                }
            }
            return
        }
        var list = JSONMemberList(countMax: .max)
        for key in keys {
            try list.checkIsNew(key, bytes)
            list.append(key: key, value: key)
        }
    }

    private static let comparedAsBytesMax = 24

    mutating func append(key: Range<Int>, value: Range<Int>) { members.append((key, value)) }

    private static func areEqual(_ left: Range<Int>, _ right: Range<Int>, _ bytes: borrowing Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        for index in 0..<left.count where bytes[left.lowerBound + index] != bytes[right.lowerBound + index] {
            return false
        }
        return true
    }

    private static func text(_ range: Range<Int>, _ bytes: borrowing Span<UInt8>) -> [Unicode.Scalar] {
        // Scalars: PostgreSQL distinguishes canonically equivalent keys, unlike Swift's strings.
        Array(JSONMember.text(range, bytes).unicodeScalars)
    }
}
