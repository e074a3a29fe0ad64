import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// The plan of an entry in the demo.
enum EntryVariant: CaseIterable, Sendable {
    /// Draft, then submit.
    case plain
    /// Drafted with the wish to be submitted.
    case submittedAtOnce
    /// Drafted wrong, corrected, submitted.
    case correctedBefore
    /// Submitted, and after its release the text is changed.
    case editedAfter
    /// A mistake that is deleted as a draft.
    case deletedBefore
    /// A mistake that is noticed after its release, and deleted.
    case deletedAfter

    /// Whether the entry must be deleted without a trace.
    var isMistake: Bool { self == .deletedBefore || self == .deletedAfter }
}

/// The data of an entry before it is drafted, and its expected end.
struct EntryPlan: Equatable, Sendable {
    let entry: PlannedEntry
    /// The object's id; a mistake has one of its own.
    let id: UUID
    let variant: EntryVariant

    /// Per thousand of the entries that are to be released.
    static let submittedAtOnceShare = 200
    static let correctedBeforeShare = 100
    static let editedAfterShare = 50
    static let deletedBeforeShare = 30
    static let deletedAfterShare = 20

    /// The plan for an entry, and for the mistakes made on its occasion; the same in every run.
    static func plans(for entry: PlannedEntry) -> [EntryPlan] {
        let isToBeReleased = entry.expectation == .released
        let share = draw("variant", entry)
        let variant: EntryVariant =
            if share < correctedBeforeShare {
                .correctedBefore
            } else if share < correctedBeforeShare + editedAfterShare {
                isToBeReleased ? .editedAfter : .plain
            } else if share < correctedBeforeShare + editedAfterShare + submittedAtOnceShare {
                .submittedAtOnce
            } else {
                .plain
            }
        var plans = [EntryPlan(entry: entry, id: entry.id, variant: variant)]
        let mistake = draw("mistake", entry)
        if isToBeReleased && mistake < deletedBeforeShare {
            plans.append(EntryPlan(entry: entry, id: extraID("deleted-before", entry), variant: .deletedBefore))
        } else if isToBeReleased && mistake < deletedBeforeShare + deletedAfterShare {
            plans.append(EntryPlan(entry: entry, id: extraID("deleted-after", entry), variant: .deletedAfter))
        }
        return plans
    }

    private static func extraID(_ purpose: String, _ entry: PlannedEntry) -> UUID {
        StableID.uuid(purpose, entry.id.text)
    }

    /// A number from 0 to 999 that is always the same for the entry.
    private static func draw(_ purpose: String, _ entry: PlannedEntry) -> Int {
        let bytes = StableID.uuid(purpose, entry.id.text).uuid
        return ((Int(bytes.14) << 8 | Int(bytes.15)) * 1000) >> 16
    }

    /// The final text.
    var text: String { variant == .editedAfter ? Self.text("Edited: ", entry) : entry.text }

    /// The text of the first draft.
    var draftText: String { variant == .correctedBefore ? Self.text("Wrong: ", entry) : entry.text }

    /// The duration in the first draft; a correction also removes an excess quarter of an hour.
    var draftSeconds: Int { entry.durationSeconds + (variant == .correctedBefore ? 900 : 0) }

    private static func text(_ prefix: String, _ entry: PlannedEntry) -> String {
        String((prefix + entry.text).prefix(TimeEntry.submittedTextLengthMax))
    }
}

/// An entry on a device.
struct SeenEntry: Equatable, Sendable {
    let position: Int64
    let status: EntryStatus
    let text: String?
    let isSubmitRequested: Bool
}

extension SeenEntry {
    /// - Returns: `nil` when the fields are not those of an entry.
    init?(_ object: DeviceObject) {
        guard let fields = try? JSONObject(object.fields) else { return nil }
        let status = fields.text(of: "status") ?? EntryStatus.draft.rawValue
        guard let status = EntryStatus(rawValue: status) else { return nil }
        self.init(
            position: object.position, status: status, text: fields.text(of: "text"),
            isSubmitRequested: fields.isTrue("submitRequested"))
    }
}

/// The state machine of an entry, from the person's side: it returns the next mutation.
///
/// It does not depend on an earlier run's state: the realm determines the phase.
struct EntryScript: Sendable {
    enum Phase: Equatable, Sendable {
        case toDraft
        /// Drafted; to be corrected, deleted or submitted.
        case drafted
        case corrected
        /// Waiting for the final status.
        case submitted
        /// The edit after the release is in flight, or accepted at the position.
        case editing(accepted: Int64?)
        /// The deletion is in flight, or accepted.
        case deleting(isAccepted: Bool)
        case done
        /// It ended, but not as planned.
        case failed(String)
    }

    let plan: EntryPlan
    private(set) var phase: Phase = .toDraft

    init(_ plan: EntryPlan) { self.plan = plan }

    var isFinished: Bool {
        switch phase {
        case .done, .failed: true
        case .toDraft, .drafted, .corrected, .submitted, .editing, .deleting: false
        }
    }

    /// Whether the next step needs an update from the server.
    var isWaiting: Bool {
        switch phase {
        case .submitted, .editing, .deleting, .done, .failed: true
        case .toDraft, .drafted, .corrected: false
        }
    }

    /// Whether an answer of the gateway can bring the entry to its end.
    var awaitsResponse: Bool {
        switch phase {
        case .editing, .deleting: true
        case .toDraft, .drafted, .corrected, .submitted, .done, .failed: false
        }
    }

    /// Continues from the realm's content.
    mutating func begin(seen: SeenEntry?) {
        guard let seen else { return }
        phase = plan.variant == .deletedBefore || !seen.isSubmitRequested ? .drafted : .submitted
    }

    /// The next thing to do without waiting for the server; `nil` when there is none.
    ///
    /// - Parameter draft: The fields of a draft with a text, a length and the wish to be submitted.
    mutating func next(draft: (String, Int, Bool) throws -> [UInt8]) rethrows -> Mutation? {
        switch phase {
        case .toDraft:
            let isAtOnce = plan.variant == .submittedAtOnce
            phase = isAtOnce ? .submitted : .drafted
            return Mutation(
                operation: .put, kind: .timeEntry, id: plan.id,
                fields: try draft(plan.draftText, plan.draftSeconds, isAtOnce))
        case .drafted:
            if plan.variant == .deletedBefore {
                phase = .deleting(isAccepted: false)
                return delete
            }
            guard plan.variant == .correctedBefore else { return submit() }
            phase = .corrected
            return patch(textMember + ",\"durationSeconds\":\(plan.entry.durationSeconds)")
        case .corrected: return submit()
        case .submitted, .editing, .deleting, .done, .failed: return nil
        }
    }

    private mutating func submit() -> Mutation {
        phase = .submitted
        return patch("\"submitRequested\":true")
    }

    private var textMember: String { "\"text\":" + String(decoding: JSONText.string(plan.text), as: UTF8.self) }

    private func patch(_ members: String) -> Mutation { .patch(.timeEntry, plan.id, "{\(members)}") }

    private var delete: Mutation { .delete(.timeEntry, plan.id) }

    /// Looks at the entry in the device's copy after a change there; `nil` when it is not, or no longer, there.
    ///
    /// - Returns: What the person does about it.
    mutating func evaluate(_ seen: SeenEntry?) -> Mutation? {
        switch phase {
        case .submitted:
            guard let seen else {
                phase = plan.variant.isMistake ? .done : .failed("it is gone")
                return nil
            }
            return judge(seen)
        case .editing(let accepted):
            // The edit itself leaves the status; only a later `released` is the back end's answer to it. A draft is an
            // entry that a restored database had lost: it goes the whole way again.
            guard let seen, let accepted, seen.position > accepted, seen.status.isResult else { return nil }
            return settle(seen)
        case .deleting(let isAccepted):
            // An entry that existed between two polls of the gateway only is never shown; its response suffices.
            if seen == nil && isAccepted { phase = .done }
            return nil
        case .toDraft, .drafted, .corrected, .done, .failed: return nil
        }
    }

    /// Handles a status that the server has set.
    private mutating func judge(_ seen: SeenEntry) -> Mutation? {
        switch seen.status {
        case .released where plan.variant == .deletedAfter:
            phase = .deleting(isAccepted: false)
            return delete
        case .released where plan.variant == .editedAfter && seen.text != plan.text:
            phase = .editing(accepted: nil)
            return patch(textMember)
        default: return seen.status.isResult ? settle(seen) : nil
        }
    }

    private mutating func settle(_ seen: SeenEntry) -> Mutation? {
        let expected: EntryStatus = plan.entry.expectation == .released ? .released : .invalid
        phase = seen.status == expected ? .done : .failed("it is \(seen.status.rawValue)")
        return nil
    }

    /// Ends the script with a failure.
    mutating func giveUp(_ reason: String) { phase = .failed(reason) }

    /// Handles the response to one of the entry's mutations; the caller evaluates the entry again afterwards.
    mutating func take(_ outcome: MutationOutcome, of mutation: Mutation) {
        switch (outcome, phase) {
        case (.accepted(let position), .editing(nil)): phase = .editing(accepted: position)
        case (.accepted, .deleting) where mutation.operation == .delete: phase = .deleting(isAccepted: true)
        // If the result of a mutation has expired, the copy shows its effect.
        case (.accepted, _), (.expired, _): break
        // A second run: the mistake was made and deleted in an earlier one.
        case (.rejected("deleted", _), _) where plan.variant.isMistake: phase = .done
        case (.rejected(_, _), .done): break
        case (.rejected(let code, let detail), _): phase = .failed("the gateway rejects: \(detail) (\(code))")
        }
    }
}

extension EntryStatus {
    /// Whether the status is a result of a submission.
    fileprivate var isResult: Bool {
        switch self {
        case .suggestion, .draft, .submitted: false
        case .invalid, .released, .rejected, .approved, .recorded: true
        }
    }
}
