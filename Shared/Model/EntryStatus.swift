/// The state of an entry between the device and the back end.
///
/// | from | to |
/// |---|---|
/// | suggestion | draft, submitted, invalid |
/// | draft | submitted, invalid, an observed status |
/// | submitted | draft (withdrawn), invalid, an observed status |
/// | invalid | draft (the device corrects or resubmits it), submitted, an observed status |
/// | released | draft (withdrawn), submitted, invalid (an edit), an observed status |
/// | rejected | draft (withdrawn), submitted, invalid (an edit), an observed status |
/// | approved | draft (withdrawn), submitted, invalid (an edit: the back end cancels and recreates), an observed status |
/// | recorded | none: it is closed |
///
/// An observed status is released, rejected, approved or recorded, as read from the back end. The back end is polled,
/// so intermediate statuses may be skipped; approval and rejection can be revoked. A withdrawal is the device's request
/// (`submitRequested` false); the server makes the entry a draft when the back end has no record.
///
/// Sources: the names and the forward order are the first model's ("Time entry statuses"; all are optional there). The
/// approver's transitions 20→30, 20→40, 30→20, 40→20 and release directly to 30 are SAP CATS's (20 released, 30
/// approved, 40 rejected). It follows that edits lead back to `submitted`, and that `recorded` ("closed for further
/// editing") is final.
public enum EntryStatus: String, Codable, CaseIterable, Sendable {
    /// Proposed to the person by the device or the server.
    case suggestion
    /// Written by the person, not submitted yet.
    case draft
    /// Accepted by the server; the back end has not confirmed it yet.
    case submitted
    /// Cannot be written to the back end: it is incomplete or inconsistent, or the back end refused it. The status log
    /// has the reason.
    case invalid
    /// Stored in the back end and released for approval.
    case released
    /// Rejected by an approver.
    case rejected
    /// Approved.
    case approved
    /// Posted in the back end; closed for editing.
    case recorded

    /// The statuses that may follow this one, which is not included.
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

    /// Whether an entry with this status may change to `next`; false for the same status.
    public func canMove(to next: EntryStatus) -> Bool { successors.contains(next) }

    /// Whether a device may write `status`; the other statuses report the back end's state.
    public static func deviceMay(set status: EntryStatus) -> Bool {
        switch status {
        case .suggestion, .draft: true
        case .submitted, .invalid, .released, .rejected, .approved, .recorded: false
        }
    }

    /// Whether a device may change an entry from this status to `next` by writing it. Submitted entries are withdrawn
    /// with `submitRequested`, not by writing `draft`.
    public func deviceMay(moveTo next: EntryStatus) -> Bool {
        switch self {
        case .suggestion, .draft, .invalid: EntryStatus.deviceMay(set: next) && canMove(to: next)
        case .submitted, .released, .rejected, .approved, .recorded: false
        }
    }

    /// Whether the server has accepted the entry and the back end has not rejected its data: an edit then requests a
    /// change of the back end's record.
    public var isHandedIn: Bool {
        switch self {
        case .suggestion, .draft, .invalid: false
        case .submitted, .released, .rejected, .approved, .recorded: true
        }
    }

    /// Whether the entry can no longer be edited or deleted.
    public var isClosed: Bool { successors.isEmpty }
}
