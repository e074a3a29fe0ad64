import Essentials

/// A row of a list with one value that no client expects. The row's number determines the value and its replacement:
/// a row is the same whenever it is read.
enum UnreadableRow {
    /// Bytes at the beginning of a text.
    private static let beginnings: [[UInt8]] = [
        Array(#"\ud83d"#.utf8), Array(#"\udc00"#.utf8), Array(#"\ud83d\ud83d"#.utf8), Array(#"\u0000"#.utf8),
        Array(#"\x41"#.utf8), Array(#"\uD8ZZ"#.utf8),
        [0xED, 0xA0, 0xBD], [0xED, 0xB2, 0x80], [0xC0, 0xAF], [0xE0, 0x80, 0xAF], [0xF4, 0x90, 0x80, 0x80], [0xFF],
        [0xE2, 0x82], [0x80], [0x00], [0x0A], [0x1F],
    ]
    /// Replacements of a value.
    private static let values: [[UInt8]] = [
        "{}", "[]", "true", "1e400", "-1e400", "99999999999999999999999999", "NaN", "-",
        "{\"a\":[{\"b\":\"\\ud83d\"}]}",
        String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000),
        String(repeating: "{\"a\":", count: 600) + "null" + String(repeating: "}", count: 600),
    ].map { Array($0.utf8) }
    /// Replacements of the id; an empty one: the member is missing.
    private static let ids: [[UInt8]] = ["null", "", "{}", "[]", "true", "1e400"].map { Array($0.utf8) }
    /// Replacements of the row.
    private static let rows: [[UInt8]] = ["null", "7", "[]", "{}", "\"row\"", "true", "\"\\ud83d\""].map {
        Array($0.utf8)
    }

    private enum Variant { case beginning([UInt8]), value([UInt8]), id([UInt8]), row([UInt8]) }

    private static let variants =
        beginnings.map(Variant.beginning) + values.map(Variant.value) + ids.map(Variant.id) + rows.map(Variant.row)

    /// Number of variants of each value.
    static var variantCount: Int { variants.count }

    /// - Parameters:
    ///   - members: Those of the row.
    ///   - id: The member that names it.
    ///   - make: Makes the row of its members.
    static func json(
        _ members: [(String, JSON)], id: String, number: Int, make: ([(String, JSON)]) -> JSON
    ) -> JSON {
        var members = members
        let index = number / variantCount % max(1, members.count)
        switch variants[number % variantCount] {
        case .beginning(let bytes):
            members[index].1 = members[index].1.changingOneValue(number) { $0.beginning(with: bytes) }
        case .value(let bytes):
            members[index].1 = members[index].1.changingOneValue(number) { _ in .raw(bytes) }
        case .id(let bytes):
            members = members.compactMap { $0.0 != id ? $0 : bytes.isEmpty ? nil : ($0.0, .raw(bytes)) }
        case .row(let bytes):
            return .raw(bytes)
        }
        return make(members)
    }
}

extension JSON {
    /// A row of a list, or what ``UnreadableRow`` makes of it.
    func unreadable(if isUnreadable: Bool, id: String, number: Int) -> JSON {
        guard isUnreadable, case .object(let members) = self else { return self }
        return UnreadableRow.json(members, id: id, number: number) { .object($0) }
    }

    fileprivate func beginning(with bytes: [UInt8]) -> JSON {
        guard case .string = self else { return .raw([UInt8(ascii: "\"")] + bytes + [UInt8(ascii: "\"")]) }
        let written = self.bytes
        return .raw(written.prefix(1) + bytes + written.dropFirst())
    }

    /// Changes this value, or one of an object's.
    fileprivate func changingOneValue(_ number: Int, _ change: (JSON) -> JSON) -> JSON {
        guard case .object(var members) = self, !members.isEmpty else { return change(self) }
        let index = number % members.count
        members[index].1 = members[index].1.changingOneValue(number, change)
        return .object(members)
    }
}
