import Essentials
import FoundationEssentials
import Model

/// The notice that a decision about an entry causes for its person.
///
/// Notices concern what others decided: the back end, an approver, or the validation. The person's own requests and
/// their success cause none; the entry's status has these. An entry that no device has edited was made in the back end,
/// mostly by the same person: only its rejection causes a notice.
enum EntryNoticeRule {
    /// Limit of the reasons in Unicode scalars, because a notice is limited to 4 KB.
    private static let reasonScalarsMax = 600

    /// - Parameters:
    ///   - state: The state before the decision.
    ///   - timestamp: The time of the first line of the status log.
    /// - Returns: `nil` if the decision needs no notice.
    static func notice(
        _ decision: SubmissionDecision, about state: SubmissionState, entry id: UUID, at timestamp: Timestamp
    ) -> Notice? {
        // Without a change of the entry, a later edit is processed next, and its result is the one that counts.
        guard let line = decision.log.first, let change = decision.entry else { return nil }
        var stored: TimeEntry?
        var isEdited = true
        if case .live(let entry, let editPosition) = state.entry { (stored, isEdited) = (entry, editPosition > 0) }
        // A restored entry has its content in the decision.
        var subject = stored
        if case .put(let fields) = change { subject = fields }
        guard let subject, let event = event(line, before: stored?.status, isEdited: isEdited) else { return nil }
        let name = subject.entryDate.map { "Your entry of \($0)" } ?? "Your entry"
        let reason = decision.log.compactMap(\.message).joined(separator: "; ").prefix(scalars: reasonScalarsMax)
        let details = event.code == .entryChanged || reason.isEmpty ? "" : ". \(reason)"
        return Notice(
            about: id, code: event.code, text: "\(name) \(event.predicate)\(details)", timestamp: timestamp)
    }

    private struct Event {
        let code: Notice.Code
        /// The predicate of the text.
        let predicate: String
    }

    private static func event(
        _ line: SubmissionDecision.LogLine, before: EntryStatus?, isEdited: Bool
    ) -> Event? {
        if let before, before != .rejected, line.status == .rejected {
            return Event(code: .entryRejected, predicate: "was rejected")
        }
        guard isEdited, let code = line.code else { return nil }
        let isInvalid = line.status == .invalid
        switch code {
        case .problem, .refused, .idTaken:
            return Event(code: .entryInvalid, predicate: isInvalid ? "is invalid" : "was not changed")
        // Otherwise the entry is submitted again.
        case .recordGone where isInvalid: return Event(code: .entryInvalid, predicate: "is invalid")
        // Without an entry before, it was created in the back end.
        case .recordChanged where before != nil:
            return Event(code: .entryChanged, predicate: "was changed in the back end")
        default: return nil
        }
    }
}
