/// What can be chosen for fields, as much of it as an object can hold.
struct ChoiceLists: Equatable {
    /// Choices of one list that are told.
    static let countMax = 1_000
    /// Bytes of all choices together: an object has 64 KiB.
    static let bytesMax = 48 * 1_024
    /// What a choice costs beside its own text.
    private static let choiceBytes = 4

    /// By the names of the fields; empty where the tracker has no list.
    private(set) var choices: [String: [String]] = [:]
    /// Which lists are not whole, for the person.
    private(set) var messages: [String] = []
    private var byteCount = 0

    mutating func add(_ list: [String], of field: String) {
        var told: [String] = []
        for choice in list.prefix(Self.countMax) {
            // Escaped, a byte may take six.
            let bytes = choice.utf8.reduce(Self.choiceBytes) { $0 + ($1 < 0x20 ? 6 : $1 == 0x22 || $1 == 0x5C ? 2 : 1) }
            guard byteCount + bytes <= Self.bytesMax else { break }
            byteCount += bytes
            told.append(choice)
        }
        choices[field] = told
        if told.count < list.count {
            messages.append("Of the \(list.count) choices for '\(field)' the first \(told.count) are told")
        }
    }
}
