/// Where an entry is on its way from the device to the books.
///
/// | from | to |
/// |---|---|
/// | suggestion | draft, submitted, invalid |
/// | draft | submitted, invalid, and what an observation of the back end finds |
/// | submitted | draft (withdrawn), invalid, and what an observation finds |
/// | invalid | draft (the device corrects it, or asks again), submitted, and what an observation finds |
/// | released | draft (withdrawn), submitted, invalid (an edit), and what an observation finds |
/// | rejected | draft (withdrawn), submitted, invalid (an edit), and what an observation finds |
/// | approved | draft (withdrawn), submitted, invalid (an edit: the back end cancels and creates anew), and what an
/// observation finds |
/// | recorded | nothing: it is closed |
///
/// "What an observation finds" is released, rejected, approved or recorded. Statuses are seen from time to time, so
/// those between two looks are skipped; that approval and rejection are taken back is ordinary. A withdrawal is the
/// device's request (`submitRequested` false); the server makes the entry a draft once the back end has no record.
///
/// Sources: the names and the forward order are the first model's ("Time entry statuses"; all are optional there). The
/// approver's moves 20→30, 20→40, 30→20, 40→20 and release straight to 30 are SAP CATS's (20 released, 30 approved,
/// 40 rejected). That edits lead back to `submitted`, and that nothing leaves `recorded` ("closed for further
/// editing"), follows from them.
public enum EntryStatus: String, Codable, CaseIterable, Sendable {
    /// Proposed to the person, by the device or by the server.
    case suggestion
    /// Written by the person, not yet to be submitted.
    case draft
    /// Taken by the server; the back end has not confirmed it yet.
    case submitted
    /// Cannot be written to the back end; the status log says why.
    case invalid
    /// In the back end and released for approval.
    case released
    /// Refused by an approver.
    case rejected
    /// Approved.
    case approved
    /// In the books; closed for editing.
    case recorded

    /// The statuses that may follow this one. Staying is not a move.
    public var successors: [EntryStatus] {
        let observed: [EntryStatus] = [.released, .rejected, .approved, .recorded]
        return switch self {
        case .suggestion: [.draft, .submitted, .invalid]
        case .draft: [.submitted, .invalid] + observed
        case .submitted: [.draft, .invalid] + observed
        case .invalid: [.draft, .submitted] + observed
        case .released, .rejected, .approved: [.draft, .submitted, .invalid] + observed.filter { $0 != self }
        case .recorded: []
        }
    }

    /// Whether an entry with this status may take `next`; false for the same status.
    public func canMove(to next: EntryStatus) -> Bool { successors.contains(next) }

    /// Whether a device may write `status` itself: the others tell what the back end did.
    public static func deviceMay(set status: EntryStatus) -> Bool {
        switch status {
        case .suggestion, .draft: true
        case .submitted, .invalid, .released, .rejected, .approved, .recorded: false
        }
    }

    /// Whether a device may move an entry with this status to `next` by writing it: what the server has taken is
    /// withdrawn, and not made a draft by its device.
    public func deviceMay(moveTo next: EntryStatus) -> Bool {
        switch self {
        case .suggestion, .draft, .invalid: EntryStatus.deviceMay(set: next) && canMove(to: next)
        case .submitted, .released, .rejected, .approved, .recorded: false
        }
    }

    /// Whether the server has taken the entry for its back end and not refused it: an edit is then a request to change
    /// what the back end has.
    public var isHandedIn: Bool {
        switch self {
        case .suggestion, .draft, .invalid: false
        case .submitted, .released, .rejected, .approved, .recorded: true
        }
    }

    /// Whether the entry can no longer be edited or deleted.
    public var isClosed: Bool { successors.isEmpty }
}
