import Essentials
import FoundationEssentials
import Model

/// A person's edits of a time entry.
enum EntryEdits {
    /// Returns a new entry's fields. Its status is `draft` by default.
    static func new(_ fields: JSONObject) throws(MutationProblem) -> [UInt8] {
        guard let status = status(in: fields) else {
            return try fields.with(EntryField.status.rawValue, "\"draft\"")
        }
        try checkDeviceMaySet(status)
        return fields.bytes
    }

    /// Returns the changes of an entry's fields, with those that they imply.
    ///
    /// `submitRequested` means that the entry shall be in the back end. Once set, only an explicit `false` removes it.
    /// An edit of an entry that the server has taken over, or that came from the back end, is a request to change it
    /// there. A new request for a rejected entry makes it a draft again, so that a repeated request is a change too.
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

    /// Returns how an entry is deleted: at once if no back end can have it. The submitter sets `submitted` before its
    /// first call, so a suggestion or draft without a back end's id has not been sent.
    static func deletion(of entry: StoredEntry) throws(MutationProblem) -> MutationChange {
        guard !entry.isDeletionPending else { return .unchanged }
        try entry.checkIsOpen()
        return switch entry.status {
        case .suggestion, .draft, .invalid: entry.hasBackendID ? .requestDeletion : .tombstone
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
                "'status' cannot change from \(current.rawValue) to \(next.rawValue); omit it" + withdrawal)
        }
    }

    private static func checkDeviceMaySet(_ status: EntryStatus) throws(MutationProblem) {
        guard EntryStatus.deviceMay(set: status) else {
            throw MutationProblem(
                .statusNotAllowed,
                "'status' \(status.rawValue) is set by the server only; a device may set suggestion or draft, "
                    + "and requests submission with submitRequested")
        }
    }

    private static func status(in fields: JSONObject) -> EntryStatus? {
        fields.text(of: EntryField.status.rawValue).flatMap { EntryStatus(rawValue: $0) }
    }
}

/// A stored entry's fields that the mutation rules depend on.
struct StoredEntry {
    let fields: JSONObject
    let status: EntryStatus
    let hasBackendID: Bool
    let isDeletionPending: Bool
    /// `nil` if it was never set.
    let submitRequested: Bool?

    init(_ bytes: [UInt8]) throws(MutationProblem) {
        do { fields = try JSONObject(bytes) } catch { throw MutationRules.unreadable("\(error)") }
        let text = fields.text(of: EntryField.status.rawValue) ?? EntryStatus.draft.rawValue
        guard let status = EntryStatus(rawValue: text) else {
            throw MutationRules.unreadable("this release does not support the status '\(text)'")
        }
        self.status = status
        hasBackendID = fields.text(of: EntryField.backendId.rawValue) != nil
        isDeletionPending = fields.isTrue(EntryField.deleteRequested.rawValue)
        submitRequested = fields.value(of: EntryField.submitRequested.rawValue).flatMap {
            Bool(String(decoding: $0, as: UTF8.self))
        }
    }

    /// - Throws: ``MutationProblem`` if a device may not edit or delete the entry any more.
    func checkIsOpen() throws(MutationProblem) {
        guard !status.isClosed else {
            throw MutationProblem(
                .closed, "the entry is \(status.rawValue) in the back end and cannot be changed")
        }
        guard !isDeletionPending else {
            throw MutationProblem(.deletionPending, "the entry's deletion is in progress; it cannot be edited")
        }
    }
}

/// The changes of an entry's status log that a device's write causes.
///
/// The newest line always has the entry's status: creating an entry, and each change of its status, adds a line. The
/// other writers add lines for their own changes.
enum EntryLog {
    /// Returns the line that a write adds; `nil` if the status is unchanged.
    ///
    /// - Parameters:
    ///   - before: The stored fields; `nil` for a new entry.
    ///   - after: The fields to store, to which the caller adds those of ``fields(with:)``.
    /// - Throws: ``JSONError`` if the fields cannot be parsed.
    static func line(
        of entry: UUID, before: [UInt8]?, after: [UInt8], now: Timestamp
    ) throws(JSONError) -> TimeEntryStatus? {
        let status = status(try JSONObject(after))
        guard let before else { return TimeEntryStatus(entry: entry, status: status, timestamp: now) }
        let stored = try JSONObject(before)
        if self.status(stored) == status { return nil }
        let newest = stored.text(of: EntryField.statusAt.rawValue).flatMap { Timestamp($0) }
        return TimeEntryStatus(
            entry: entry, status: status, timestamp: TimeEntryStatus.time(now, after: newest))
    }

    /// Returns the entry's fields that depend on the new line.
    static func fields(with line: TimeEntryStatus) -> [UInt8] {
        JSONObject.bytes(of: [(EntryField.statusAt.rawValue, JSONText.string("\(line.timestamp)")[...])])
    }

    private static func status(_ fields: JSONObject) -> EntryStatus {
        fields.text(of: EntryField.status.rawValue).flatMap { EntryStatus(rawValue: $0) } ?? .draft
    }
}

extension JSONObject {
    /// Returns the object with a new value for one field.
    fileprivate func with(_ name: String, _ value: String) throws(MutationProblem) -> [UInt8] {
        do { return merging(try JSONObject(JSONObject.bytes(of: [(name, Array(value.utf8)[...])]))) } catch {
            throw MutationRules.unreadable("\(error)")
        }
    }
}
