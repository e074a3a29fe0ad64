/// The choices of fields, limited to the size of an object.
struct ChoiceLists: Equatable {
    /// Limit on choices of one list.
    static let countMax = 1_000
    /// Bytes of a choice in addition to its text.
    private static let choiceBytes = 4

    /// Choices by field name; empty if the tracker has no list.
    private(set) var choices: [String: [String]] = [:]
    /// Messages to the person about incomplete lists.
    private(set) var messages: [String] = []
    private var bytesLeft: Int

    /// - Parameter bytesMax: Limit on the bytes of all choices.
    init(bytesMax: Int = DetailContent.bytesMax) { bytesLeft = bytesMax }

    mutating func add(_ list: [String], of field: String) {
        var included: [String] = []
        for choice in list.prefix(Self.countMax) {
            let bytes = Self.choiceBytes + choice.jsonByteCount
            guard bytes <= bytesLeft else { break }
            bytesLeft -= bytes
            included.append(choice)
        }
        choices[field] = included
        if included.count < list.count {
            messages.append("'\(field)' has \(list.count) choices; only the first \(included.count) are included")
        }
    }
}
