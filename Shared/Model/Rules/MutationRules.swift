/// Decides what a device's mutation does to an object.
///
/// Repeating a mutation changes nothing more. A device never gives an entry a status that tells what a back end did,
/// never changes a recorded entry, and never makes an entry vanish that a back end may know.
public enum MutationRules {
    /// Decides about a mutation of the object that is stored now (`nil`: there is none, nor a tombstone).
    public static func decide(_ mutation: Mutation, current: StoredObject?) -> MutationDecision {
        do throws(MutationProblem) {
            try DeviceWrites.check(mutation.kind)
            return .accept(try change(mutation, current))
        } catch {
            return .reject(error)
        }
    }

    private static func change(
        _ mutation: Mutation, _ current: StoredObject?
    ) throws(MutationProblem) -> MutationDecision.Change {
        switch mutation.operation {
        case .put:
            let fields = try checkedFields(of: mutation)
            switch current {
            case .none: return .insert(fields: try newEntry(fields))
            case .tombstone: throw deleted
            case .live(let stored): return .merge(fields: try replacement(fields, of: try StoredEntry(stored)))
            }
        case .patch:
            let fields = try checkedFields(of: mutation)
            switch current {
            case .none: throw MutationProblem(.unknownObject, "there is no such object to patch; put it first")
            case .tombstone: throw deleted
            case .live(let stored): return .merge(fields: try edit(fields, of: try StoredEntry(stored)))
            }
        case .delete:
            guard mutation.fields == nil else { throw MutationProblem(.fieldsMismatch, "a delete has no fields") }
            switch current {
            // A tombstone may have been compacted away since the delete was first sent.
            case .none, .tombstone: return .none
            case .live(let stored): return try deletion(of: try StoredEntry(stored))
            }
        }
    }

    private static let deleted = MutationProblem(.deleted, "the object was deleted; its id cannot be used again")

    private static func checkedFields(of mutation: Mutation) throws(MutationProblem) -> JSONObject {
        guard let fields = mutation.fields else {
            throw MutationProblem(.fieldsMismatch, "a \(mutation.operation.rawValue) needs fields")
        }
        return try DeviceWrites.check(fields, of: mutation.kind)
    }

    /// A new entry's fields; it is a draft unless it says otherwise.
    private static func newEntry(_ fields: JSONObject) throws(MutationProblem) -> [UInt8] {
        guard let status = status(in: fields) else {
            return fields.merging(try object([("status", Array("\"draft\"".utf8)[...])]))
        }
        try checkDeviceMaySet(status)
        return fields.bytes
    }

    /// A put over an existing entry: the device-owned fields it lacks become null, and its status stays.
    private static func replacement(
        _ fields: JSONObject, of entry: StoredEntry
    ) throws(MutationProblem) -> [UInt8] {
        let given = Set(fields.members.map(\.key))
        let lost = DeviceWrites.fields(of: .timeEntry).filter { name in
            name != EntryField.status.rawValue && !given.contains(name) && entry.fields.value(of: name) != nil
        }
        let nulls = try object(lost.map { ($0, Array("null".utf8)[...]) })
        let whole: JSONObject
        do { whole = try JSONObject(fields.merging(nulls)) } catch { throw unreadable("\(error)") }
        return try edit(whole, of: entry)
    }

    private static func edit(_ fields: JSONObject, of entry: StoredEntry) throws(MutationProblem) -> [UInt8] {
        try entry.checkIsOpen()
        if let status = status(in: fields) { try checkMove(from: entry.status, to: status) }
        let size = entry.fields.merging(fields).count
        guard size <= DeviceWrites.fieldsBytesMax else {
            throw MutationProblem(
                .tooLarge, "the object would have \(size) bytes; at most \(DeviceWrites.fieldsBytesMax) are allowed")
        }
        return fields.bytes
    }

    /// At once when no back end can know the entry. The submitter sets `submitted` before its first call, so a
    /// suggestion or draft without a back end's id has not been sent.
    private static func deletion(of entry: StoredEntry) throws(MutationProblem) -> MutationDecision.Change {
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

    private static func object(
        _ members: [(key: String, value: ArraySlice<UInt8>)]
    ) throws(MutationProblem) -> JSONObject {
        do { return try JSONObject(JSONObject.bytes(of: members)) } catch { throw unreadable("\(error)") }
    }

    static func unreadable(_ reason: String) -> MutationProblem {
        MutationProblem(.unreadable, "the stored object cannot be read: \(reason)")
    }
}
