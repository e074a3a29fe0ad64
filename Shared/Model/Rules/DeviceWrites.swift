/// What a device may write: which kinds, which of their fields, and in which shape.
public enum DeviceWrites {
    /// The largest fields of an object, and of a mutation, in bytes of JSON.
    public static let fieldsBytesMax = 65_536
    /// The longest text an entry can hold in characters; when it is submitted ``EntryRules/textLengthMax`` counts.
    public static let textLengthMax = 1000
    /// The most selections an entry can hold.
    public static let selectionsMax = 64

    /// The fields of a kind that belong to the device. Empty: devices do not write the kind.
    public static func fields(of kind: Kind) -> [String] {
        isWritten(kind) ? EntryField.allCases.filter { !$0.isServerOwned }.map(\.rawValue) : []
    }

    private static func isWritten(_ kind: Kind) -> Bool {
        switch kind {
        case .timeEntry: true
        case .realms, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntryStatus: false
        }
    }

    /// Checks that devices write objects of this kind.
    ///
    /// - Throws: ``MutationProblem`` when they do not.
    public static func check(_ kind: Kind) throws(MutationProblem) {
        guard isWritten(kind) else {
            throw MutationProblem(
                .kindNotAllowed, "devices do not write \(kind.rawValue) objects; they write \(Kind.timeEntry.rawValue)")
        }
    }

    /// Checks the fields of a put or patch.
    ///
    /// - Returns: The fields, split.
    /// - Throws: ``MutationProblem``, the first one found.
    public static func check(_ fields: [UInt8], of kind: Kind) throws(MutationProblem) -> JSONObject {
        try check(kind)
        guard fields.count <= fieldsBytesMax else {
            throw MutationProblem(
                .tooLarge, "the fields have \(fields.count) bytes; at most \(fieldsBytesMax) are allowed")
        }
        let object: JSONObject
        do { object = try JSONObject(fields) } catch {
            throw MutationProblem(.invalidJSON, "fields: \(error)")
        }
        for member in object.members { try check(member.key, object.bytes[member.value], of: kind) }
        return object
    }

    private static func check(
        _ key: String, _ value: ArraySlice<UInt8>, of kind: Kind
    ) throws(MutationProblem) {
        guard let field = EntryField(rawValue: key) else {
            throw MutationProblem(
                .unknownField,
                "\(kind.rawValue) has no field '\(key.prefix(64))'; a device may write: \(list(of: kind))")
        }
        guard !field.isServerOwned else {
            throw MutationProblem(
                .fieldNotAllowed, "'\(key)' is written by the server only; a device may write: \(list(of: kind))")
        }
        if let needed = field.objection(to: value) {
            throw MutationProblem(.invalidField, "'\(key)' must be \(needed)")
        }
    }

    private static func list(of kind: Kind) -> String { fields(of: kind).joined(separator: ", ") }
}
