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

    /// Number of variants of each value.
    static let variantCount = beginnings.count + values.count + ids.count + rows.count

    /// - Parameters:
    ///   - members: Those of the row.
    ///   - id: The member that names it.
    ///   - make: Makes the row of its members.
    static func json(
        _ members: [(String, JSON)], id: String, number: Int, make: ([(String, JSON)]) -> JSON
    ) -> JSON {
        var (variant, members) = (number % variantCount, members)
        let index = number / variantCount % max(1, members.count)
        if variant < beginnings.count {
            members[index].1 = members[index].1.beginning(with: beginnings[variant], number)
            return make(members)
        }
        variant -= beginnings.count
        if variant < values.count {
            members[index].1 = members[index].1.replaced(by: values[variant], number)
            return make(members)
        }
        variant -= values.count
        if variant < ids.count {
            let value = ids[variant]
            return make(
                members.compactMap { $0.0 != id ? $0 : value.isEmpty ? nil : ($0.0, .raw(value)) })
        }
        return .raw(rows[variant - ids.count])
    }
}

extension JSON {
    /// A row of a list, or what ``UnreadableRow`` makes of it.
    func unreadable(if isUnreadable: Bool, id: String, number: Int) -> JSON {
        guard isUnreadable, case .object(let members) = self else { return self }
        return UnreadableRow.json(members, id: id, number: number) { .object($0) }
    }

    fileprivate func beginning(with bytes: [UInt8], _ number: Int) -> JSON {
        changingOneValue(number) { value in
            guard case .string(let text) = value else {
                return .raw([UInt8(ascii: "\"")] + bytes + [UInt8(ascii: "\"")])
            }
            let written = JSON.string(text).bytes
            return .raw(written.prefix(1) + bytes + written.dropFirst())
        }
    }

    fileprivate func replaced(by bytes: [UInt8], _ number: Int) -> JSON {
        changingOneValue(number) { _ in .raw(bytes) }
    }

    /// Changes this value, or one of an object's.
    private func changingOneValue(_ number: Int, _ change: (JSON) -> JSON) -> JSON {
        guard case .object(var members) = self, !members.isEmpty else { return change(self) }
        let index = number % members.count
        members[index].1 = members[index].1.changingOneValue(number, change)
        return .object(members)
    }
}
