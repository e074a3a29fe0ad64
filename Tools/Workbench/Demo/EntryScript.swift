import DeviceClient
import FoundationEssentials
import Model

/// One entry on its way, from the side of the person: a state machine that answers with the next mutation.
///
/// It needs no memory of an earlier run: what the realm holds tells how far the entry has come.
struct EntryScript: Sendable {
    enum Phase: Equatable, Sendable {
        case toDraft
        /// Drafted; to be corrected, deleted or submitted.
        case drafted
        case corrected
        /// Waiting for the final status.
        case submitted
        /// The edit after the release is under way; accepted at the position once it is known.
        case editing(accepted: Int64?)
        /// The delete is on its way; accepted or not yet.
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

    /// Whether the person has nothing to do without news from the server.
    var isWaiting: Bool {
        switch phase {
        case .submitted, .editing, .deleting, .done, .failed: true
        case .toDraft, .drafted, .corrected: false
        }
    }

    /// Whether an answer of the gateway can bring the entry to its end.
    var awaitsAnswer: Bool {
        switch phase {
        case .editing, .deleting: true
        case .toDraft, .drafted, .corrected, .submitted, .done, .failed: false
        }
    }

    /// Goes on from what the realm holds.
    mutating func begin(seen: SeenEntry?) {
        guard let seen else { return }
        if plan.variant == .deletedBefore || !seen.isSubmitRequested {
            phase = .drafted
        } else {
            phase = .submitted
        }
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
            return patch("\"text\":\(JSON.string(plan.text)),\"durationSeconds\":\(plan.entry.durationSeconds)")
        case .corrected: return submit()
        case .submitted, .editing, .deleting, .done, .failed: return nil
        }
    }

    private mutating func submit() -> Mutation {
        phase = .submitted
        return patch("\"submitRequested\":true")
    }

    private func patch(_ members: String) -> Mutation {
        Mutation(operation: .patch, kind: .timeEntry, id: plan.id, fields: Array("{\(members)}".utf8))
    }

    private var delete: Mutation { Mutation(operation: .delete, kind: .timeEntry, id: plan.id) }

    /// Looks at the entry in the device's copy after a change there; `nil` when it is not, or no longer, there.
    ///
    /// - Returns: What the person does about it.
    mutating func look(_ seen: SeenEntry?) -> Mutation? {
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
            guard let seen, let accepted, seen.position > accepted, seen.status.isAnswer else { return nil }
            return settle(seen)
        case .deleting(let isAccepted):
            // One that came and went between two looks of the gateway was never shown: then its answer must do.
            if seen == nil && isAccepted { phase = .done }
            return nil
        case .toDraft, .drafted, .corrected, .done, .failed: return nil
        }
    }

    /// What follows a status that the server gave.
    private mutating func judge(_ seen: SeenEntry) -> Mutation? {
        switch seen.status {
        case .released where plan.variant == .deletedAfter:
            phase = .deleting(isAccepted: false)
            return delete
        case .released where plan.variant == .editedAfter && seen.text != plan.text:
            phase = .editing(accepted: nil)
            return patch("\"text\":\(JSON.string(plan.text))")
        default: return seen.status.isAnswer ? settle(seen) : nil
        }
    }

    private mutating func settle(_ seen: SeenEntry) -> Mutation? {
        let expected: EntryStatus =
            switch plan.entry.expectation {
            case .released: .released
            case .invalid: .invalid
            }
        phase = seen.status == expected ? .done : .failed("it is \(seen.status.rawValue)")
        return nil
    }

    /// Ends the script: it cannot go on.
    mutating func giveUp(_ reason: String) { phase = .failed(reason) }

    /// Hears the gateway's answer to one of the entry's mutations; it is to be looked at anew afterwards.
    mutating func hear(_ outcome: MutationOutcome, of mutation: Mutation) {
        switch (outcome, phase) {
        case (.accepted(let position), .editing(nil)): phase = .editing(accepted: position)
        case (.accepted, .deleting) where mutation.operation == .delete: phase = .deleting(isAccepted: true)
        // What came of a mutation whose answer is forgotten, the copy tells.
        case (.accepted, _), (.forgotten, _): break
        // A second run: the mistake was made and deleted in an earlier one.
        case (.rejected("deleted", _), _) where plan.variant.isMistake: phase = .done
        case (.rejected(_, _), .done): break
        case (.rejected(let code, let detail), _): phase = .failed("the gateway rejects: \(detail) (\(code))")
        }
    }
}

extension EntryStatus {
    /// Whether it is what the back end, or whoever judges entries, made of a submitted one.
    fileprivate var isAnswer: Bool {
        switch self {
        case .suggestion, .draft, .submitted: false
        case .invalid, .released, .rejected, .approved, .recorded: true
        }
    }
}
