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

    /// Other values for an entry's fields.
    static func edit(_ fields: JSONObject, of entry: StoredEntry) throws(MutationProblem) -> [UInt8] {
        try entry.checkIsOpen()
        if let status = status(in: fields) { try checkMove(from: entry.status, to: status) }
        return fields.bytes
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
        guard current.canMove(to: next) else {
            throw MutationProblem(
                .statusNotAllowed,
                "'status' cannot go from \(current.rawValue) to \(next.rawValue); leave it out of the fields")
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
