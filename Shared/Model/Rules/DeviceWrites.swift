/// What may be written into an object: how much, and in which shape.
public enum DeviceWrites {
    /// The largest fields of an object, and of a mutation, in bytes of JSON.
    public static let fieldsBytesMax = 65_536
    /// The largest fields of an object that everybody of an environment holds.
    public static let commonBytesMax = 4096
    /// The longest text an entry can hold in characters; when it is submitted ``EntryRules/textLengthMax`` counts.
    public static let textLengthMax = 1000
    /// The most selections an entry can hold.
    public static let selectionsMax = 64

    /// The most bytes that the fields of an object of this kind may have.
    static func bytesMax(of kind: Kind) -> Int {
        switch kind {
        case .person, .personLookup, .team, .membership, .location: commonBytesMax
        case .realms, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus,
            .fieldTask, .share, .poll, .seenRecord:
            fieldsBytesMax
        }
    }

    /// Checks the fields of a put or patch; whether the caller may write them is a matter of ``Permissions``.
    ///
    /// - Returns: The fields, split.
    /// - Throws: ``MutationProblem``, the first one found.
    static func check(_ fields: [UInt8], of kind: Kind, by writer: Writer) throws(MutationProblem) -> JSONObject {
        try checkSize(fields.count, of: kind, "the fields have")
        let object: JSONObject
        do { object = try JSONObject(fields) } catch {
            throw MutationProblem(.invalidJSON, "fields: \(error)")
        }
        if kind == .timeEntry, case .person = writer {
            for member in object.members {
                guard let needed = EntryField(rawValue: member.key)?.objection(to: object.bytes[member.value]) else {
                    continue
                }
                throw MutationProblem(.invalidField, "'\(member.key)' must be \(needed)")
            }
        }
        return object
    }

    static func checkSize(_ count: Int, of kind: Kind, _ what: String) throws(MutationProblem) {
        let bytesMax = bytesMax(of: kind)
        guard count <= bytesMax else {
            throw MutationProblem(.tooLarge, "\(what) \(count) bytes; at most \(bytesMax) are allowed")
        }
    }
}
