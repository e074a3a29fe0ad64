/// The choices of fields, limited to the size of an object.
struct ChoiceLists: Equatable {
    /// Limit on choices of one list.
    static let countMax = 1_000
    /// Limit on the bytes of all choices: an object has 64 KiB.
    static let bytesMax = 48 * 1_024
    /// Bytes of a choice in addition to its text.
    private static let choiceBytes = 4

    /// Choices by field name; empty if the tracker has no list.
    private(set) var choices: [String: [String]] = [:]
    /// Messages to the person about incomplete lists.
    private(set) var messages: [String] = []
    private var byteCount = 0

    mutating func add(_ list: [String], of field: String) {
        var included: [String] = []
        for choice in list.prefix(Self.countMax) {
            // An escaped byte may take six bytes.
            let bytes = choice.utf8.reduce(Self.choiceBytes) { $0 + ($1 < 0x20 ? 6 : $1 == 0x22 || $1 == 0x5C ? 2 : 1) }
            guard byteCount + bytes <= Self.bytesMax else { break }
            byteCount += bytes
            included.append(choice)
        }
        choices[field] = included
        if included.count < list.count {
            messages.append("'\(field)' has \(list.count) choices; only the first \(included.count) are included")
        }
    }
}
