import Model

/// The erasure of a person from objects outside of their own realms.
enum ErasureRule {
    /// The change of an object that refers to the person.
    enum Action: Equatable {
        case delete
        /// Sets these fields to null.
        case clear([String])
        /// The object belongs to others and mentions the person in a text.
        case keep
    }

    /// Decides the change of an object that has the person's address or id.
    ///
    /// - Parameters:
    ///   - isOwnID: Whether the object's id is that of the person's `Person` object.
    ///   - isShared: Whether the object is in the realm of a share from or to the person.
    ///   - references: The fields whose value is the id of the person's `Person` object.
    static func action(_ kind: Kind, isOwnID: Bool, isShared: Bool, references: [String]) -> Action {
        if isOwnID || isShared { return .delete }
        switch kind {
        case .realms, .personLookup, .membership, .share, .sharedItem, .notice, .poll, .defectPoll, .seenRecord,
            .writeCheckpoint:
            return .delete
        // The history of a share with the person, or a text of others.
        case .deletedObject, .endedShare: return references.isEmpty ? .keep : .delete
        case .taskNote: return references.contains("author") ? .delete : .keep
        case .fieldTask: return references.isEmpty ? .keep : .clear(references)
        case .person, .location, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry,
            .timeEntryStatus, .team, .appointment, .note, .defect, .defectCommand, .defectAccount, .deliveryChoice,
            .privateProfile, .own:
            return .keep
        }
    }

    /// The fields of other people's objects that name a person.
    static let references = ["assignee", "author", "completedBy", "owner", "recipient"]

    /// Returns a POSIX regular expression that matches an address and an id, but not as part of a longer address.
    static func mention(of email: String, id: String?) -> String {
        let escaped = email.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? String($0) : "\\\($0)" }.joined()
        let address = "(?<![a-z0-9._%+-])\(escaped)(?![a-z0-9-]|\\.[a-z0-9])"
        return ([address] + [id].compactMap(\.self)).joined(separator: "|")
    }
}
