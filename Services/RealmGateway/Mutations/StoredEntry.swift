import Essentials
import Model

/// What the rules about mutations need to know of a stored entry.
struct StoredEntry {
    let fields: JSONObject
    let status: EntryStatus
    let isKnownToBackend: Bool
    let isDeletionPending: Bool
    /// `nil` when it was never said.
    let submitRequested: Bool?

    init(_ bytes: [UInt8]) throws(MutationProblem) {
        do { fields = try JSONObject(bytes) } catch { throw MutationRules.unreadable("\(error)") }
        let text = fields.text(of: EntryField.status.rawValue) ?? EntryStatus.draft.rawValue
        guard let status = EntryStatus(rawValue: text) else {
            throw MutationRules.unreadable("this version does not know the status '\(text)'")
        }
        self.status = status
        isKnownToBackend = fields.text(of: EntryField.backendId.rawValue) != nil
        isDeletionPending = fields.isTrue(EntryField.deleteRequested.rawValue)
        submitRequested = fields.value(of: EntryField.submitRequested.rawValue).flatMap {
            Bool(String(decoding: $0, as: UTF8.self))
        }
    }

    /// Whether a device may still edit the entry or ask for its deletion.
    func checkIsOpen() throws(MutationProblem) {
        guard !status.isClosed else {
            throw MutationProblem(
                .closed, "the entry is \(status.rawValue) in the back end's books and closed for editing")
        }
        guard !isDeletionPending else {
            throw MutationProblem(.deletionPending, "the entry's deletion is under way; it cannot be edited")
        }
    }
}
