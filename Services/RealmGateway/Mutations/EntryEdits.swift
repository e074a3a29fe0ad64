import Essentials
import Model

/// What a person does to a time entry.
enum EntryEdits {
    /// A new entry's fields; it is a draft unless it says otherwise.
    static func new(_ fields: JSONObject) throws(MutationProblem) -> [UInt8] {
        guard let status = status(in: fields) else {
            let draft: JSONObject
            do {
                draft = try JSONObject(Array("{\"status\":\"draft\"}".utf8))
            } catch { throw MutationRules.unreadable("\(error)") }
            return fields.merging(draft)
        }
        try checkDeviceMaySet(status)
        return fields.bytes
    }

    /// Other values for an entry's fields, with what follows from them.
    ///
    /// `submitRequested` says whether the entry is to be in the back end, and so is never left open once it was asked
    /// for: only an explicit `false` takes it back. An edit of what the server has taken is a request to change it,
    /// also where it came from the back end. To ask for what was refused makes it a draft again, so that asking again
    /// without any other change is a change.
    static func edit(_ fields: JSONObject, of entry: StoredEntry) throws(MutationProblem) -> [UInt8] {
        try entry.checkIsOpen()
        let status = status(in: fields)
        if let status { try checkMove(from: entry.status, to: status) }
        let flag = EntryField.submitRequested.rawValue
        let given = fields.value(of: flag)
        if given == nil || given.map({ $0.elementsEqual("null".utf8) }) == true {
            let isStored = given == nil && entry.submitRequested != nil
            guard !isStored, let stays = entry.submitRequested ?? (entry.status.isHandedIn ? true : nil) else {
                return fields.bytes
            }
            return try fields.with(flag, stays ? "true" : "false")
        }
        guard fields.isTrue(flag), entry.status == .invalid, status == nil else { return fields.bytes }
        return try fields.with(EntryField.status.rawValue, "\"draft\"")
    }

    /// At once when no back end can know the entry. The submitter sets `submitted` before its first call, so a
    /// suggestion or draft without a back end's id has not been sent.
    static func deletion(of entry: StoredEntry) throws(MutationProblem) -> MutationDecision.Change {
        guard !entry.isDeletionPending else { return .none }
        try entry.checkIsOpen()
        return switch entry.status {
        case .suggestion, .draft, .invalid: entry.isKnownToBackend ? .requestDeletion : .tombstone
        case .submitted, .released, .rejected, .approved, .recorded: .requestDeletion
        }
    }

    private static func checkMove(from current: EntryStatus, to next: EntryStatus) throws(MutationProblem) {
        try checkDeviceMaySet(next)
        guard current != next else { return }
        guard current.deviceMay(moveTo: next) else {
            let withdrawal = current.isHandedIn ? "; to withdraw the entry, set submitRequested to false" : ""
            throw MutationProblem(
                .statusNotAllowed,
                "'status' cannot go from \(current.rawValue) to \(next.rawValue); leave it out of the fields"
                    + withdrawal
            )
        }
    }

    private static func checkDeviceMaySet(_ status: EntryStatus) throws(MutationProblem) {
        guard EntryStatus.deviceMay(set: status) else {
            throw MutationProblem(
                .statusNotAllowed,
                "'status' \(status.rawValue) is set by the server only; a device may set suggestion or draft, "
                    + "and asks for submission with submitRequested")
        }
    }

    private static func status(in fields: JSONObject) -> EntryStatus? {
        fields.text(of: EntryField.status.rawValue).flatMap { EntryStatus(rawValue: $0) }
    }
}

extension JSONObject {
    /// The object with another value for one field.
    fileprivate func with(_ name: String, _ value: String) throws(MutationProblem) -> [UInt8] {
        do { return merging(try JSONObject(JSONObject.bytes(of: [(name, Array(value.utf8)[...])]))) } catch {
            throw MutationRules.unreadable("\(error)")
        }
    }
}
