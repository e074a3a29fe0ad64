import Backends
import FoundationEssentials
import Model
import Pipeline

/// When an entry is sent to its back end, and what its answers mean (laws 4 and 5).
///
/// - At most one attempt is open per entry, and it is in the ledger before the call.
/// - A record is created only when the back end is known to have none: never tried, refused, certainly not processed,
///   or looked up after its outcome had time to settle and not found.
/// - `released` and what follows it are written only from a record that was read back.
/// - Only the back end's refusal, or the entry's own problems, make an entry `invalid`; a back end that is away never.
struct SubmissionRule: Sendable {
    /// How long nobody else may call for an entry after an attempt was opened: longer than a call can take.
    var lease: Duration
    /// How long an unknown outcome waits before the back end is asked.
    var settleMin: Duration
    /// The first wait after a back end that could not work; it doubles up to `retryMax`.
    var retryMin: Duration
    var retryMax: Duration

    enum Origin: Sendable {
        /// The entry changed, or a parked key is due.
        case look
        case answer(SubmissionAnswer, version: Int64)
    }

    func decide(_ state: SubmissionState, _ origin: Origin, attemptCount: Int = 0) -> SubmissionDecision {
        let ledger = state.ledger ?? Ledger()
        switch origin {
        case .look: return look(state, ledger)
        case .answer(let answer, let version):
            // An answer for an attempt that is not the open one any more says nothing.
            switch ledger.phase {
            case .unknown, .settled: return look(state, ledger)
            case .open, .finding: break
            }
            guard ledger.version == version else { return look(state, ledger) }
            return hear(answer, state, ledger, attemptCount)
        }
    }

    // MARK: Looking

    private func look(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        switch ledger.phase {
        case .open:
            // Another worker's call, or that of one that crashed. After the lease it can no longer be sent.
            let wait = ledger.leaseRemaining + settleMin
            if wait > .zero { return wait_(wait, "a call for the entry may be under way") }
            return find(ledger)
        case .finding:
            if ledger.leaseRemaining > .zero {
                return wait_(ledger.leaseRemaining, "the back end may be being asked about the entry")
            }
            return find(ledger)
        case .unknown:
            if ledger.leaseRemaining > .zero {
                return wait_(ledger.leaseRemaining, "whether the back end has the entry is not known yet")
            }
            return find(ledger)
        case .settled: return begin(state, ledger)
        }
    }

    private func wait_(_ wait: Duration, _ reason: String) -> SubmissionDecision {
        SubmissionDecision(step: .park(reason: reason, after: wait, cause: .planned))
    }

    /// Nothing is open: begins what the device asks for.
    private func begin(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        switch state.entry {
        case .missing: return SubmissionDecision(step: .finished)
        case .tombstone:
            if let id = ledger.backendID { return open(.delete, .delete(id: id), ledger, nil) }
            return SubmissionDecision(forgets: state.ledger != nil, step: .finished)
        case .live(let entry, let editPosition):
            if entry.deleteRequested == true {
                guard let id = ledger.backendID else {
                    return SubmissionDecision(entry: .tombstone, step: .finished)
                }
                var ledger = ledger
                ledger.editPosition = editPosition
                return open(.delete, .delete(id: id), ledger, nil)
            }
            guard entry.submitRequested == true, editPosition > ledger.editPosition, !entry.status.isClosed else {
                return SubmissionDecision(step: .finished)
            }
            return submit(state, entry, editPosition, ledger)
        }
    }

    private func submit(
        _ state: SubmissionState, _ entry: TimeEntry, _ editPosition: Int64, _ ledger: Ledger
    ) -> SubmissionDecision {
        if state.isAnothers { return refuseAnothers(entry) }
        var ledger = ledger
        ledger.editPosition = editPosition
        if state.isPersonUnknown {
            return SubmissionDecision(
                step: .dead(reason: "the back end has no such person; add them to the environment's people"))
        }
        guard state.problems.isEmpty, let wanted = state.wanted else { return refuse(state.problems, ledger) }
        if let confirmed = ledger.confirmed, ledger.backendID != nil, confirmed.wanted.isSameRecord(as: wanted) {
            // The edit changed nothing the back end keeps.
            let log = entry.status == confirmed.status ? [] : [SubmissionDecision.LogLine(status: confirmed.status)]
            return settle(ledger, EntryPatch(status: confirmed.status), log: log)
        }
        ledger.wanted = wanted
        let action: SubmissionCall.Action =
            if let id = ledger.backendID { .update(id: id, wanted) } else { .create(wanted) }
        return open(ledger.backendID == nil ? .create : .update, action, ledger, entry.status)
    }

    /// The record that carries this id as its marker is somebody else's: nothing is asked of the back end, and nothing
    /// is written into the ledger. Said once: there is no ledger to remember the edit in.
    private func refuseAnothers(_ entry: TimeEntry) -> SubmissionDecision {
        if entry.status == .invalid { return SubmissionDecision(step: .finished) }
        return SubmissionDecision(
            entry: .patch(EntryPatch(status: .invalid)),
            log: [.init(status: .invalid, message: "This id is another person's entry; make a new entry")],
            step: .finished)
    }

    /// Opens an attempt: the ledger says so before the call is made.
    private func open(
        _ operation: Ledger.Operation, _ action: SubmissionCall.Action, _ ledger: Ledger, _ status: EntryStatus?
    ) -> SubmissionDecision {
        var ledger = ledger
        ledger.version += 1
        ledger.phase = .open
        ledger.operation = operation
        var decision = SubmissionDecision(
            ledger: ledger, lease: lease, step: .call(SubmissionCall(action: action, version: ledger.version)))
        if let status, status != .submitted {
            decision.entry = .patch(EntryPatch(status: .submitted))
            decision.log = [.init(status: .submitted, message: nil)]
        }
        return decision
    }

    /// Asks the back end what became of an attempt.
    private func find(_ ledger: Ledger) -> SubmissionDecision {
        let days = Set([ledger.wanted?.day, ledger.confirmed?.wanted.day].compactMap { $0 }).sorted()
        var decision = open(ledger.operation, .find(id: ledger.backendID, days: days), ledger, nil)
        decision.ledger?.phase = .finding
        return decision
    }

    // MARK: Hearing

    private func hear(
        _ answer: SubmissionAnswer, _ state: SubmissionState, _ ledger: Ledger, _ attemptCount: Int
    ) -> SubmissionDecision {
        switch answer {
        case .record(let record): return found(record, state, ledger, attemptCount)
        case .absent: return absent(state, ledger)
        case .ambiguous(let count):
            return SubmissionDecision(
                ledger: next(ledger, .unknown),
                step: .dead(reason: "\(count) records of the back end carry this entry's marker; a person must look"))
        case .refused(let messages) where ledger.phase == .finding:
            // It is the question that is refused, such as when the person's assignment is gone: the record may exist.
            let reason = "the back end refuses to say whether it has the entry: " + messages.joined(separator: "; ")
            return SubmissionDecision(
                ledger: next(ledger, .unknown), lease: settleMin,
                step: .park(reason: reason, after: max(settleMin, retryWait(attemptCount)), cause: .attempt))
        case .refused(let messages):
            // What the back end does not say cannot be shown: then at least that it refused.
            return refuse(messages.isEmpty ? ["The back end refused the entry without a reason"] : messages, ledger)
        case .notProcessed(let reason, let retryAfter):
            let wait = max(retryAfter ?? .zero, retryWait(attemptCount))
            return SubmissionDecision(
                ledger: nothingHappened(ledger),
                step: .park(reason: reason, after: wait, cause: retryAfter == nil ? .backendAway : .askedToWait))
        case .notMade:
            return SubmissionDecision(
                ledger: nothingHappened(ledger),
                step: .park(reason: ParkCause.noRoom, after: retryMin, cause: .planned))
        case .unknown(let reason, let recordID, let retryAfter):
            var ledger = next(ledger, .unknown)
            ledger.backendID = recordID ?? ledger.backendID
            return SubmissionDecision(
                ledger: ledger, lease: settleMin,
                step: .park(
                    reason: reason, after: max(settleMin, retryAfter ?? .zero),
                    cause: retryAfter == nil ? .backendAway : .askedToWait))
        }
    }

    /// What was asked for is begun anew, unless the call only asked about an earlier one.
    private func nothingHappened(_ ledger: Ledger) -> Ledger {
        var ledger = next(ledger, ledger.phase == .finding ? .unknown : .settled)
        if ledger.phase == .settled { ledger.editPosition = 0 }
        return ledger
    }

    private func retryWait(_ attemptCount: Int) -> Duration {
        min(retryMin * (1 << min(attemptCount, 16)), retryMax)
    }

    /// The back end has the one record.
    private func found(
        _ record: BackendEntry, _ state: SubmissionState, _ ledger: Ledger, _ attemptCount: Int
    ) -> SubmissionDecision {
        var ledger = ledger
        ledger.backendID = record.id
        switch (record.status, ledger.operation) {
        case (.changed, _), (.cancelled, _): return absent(state, ledger)
        case (.inProcess, .create), (.inProcess, .update):
            return SubmissionDecision(
                ledger: next(ledger, .unknown), lease: settleMin,
                step: .park(reason: "the back end has not released the entry yet", after: settleMin, cause: .attempt))
        case (_, .delete): return notDone(state, ledger, attemptCount, "the back end still has the entry")
        case (.released, .create), (.approved, .create), (.rejected, .create), (.recorded, .create),
            (.released, .update), (.approved, .update), (.rejected, .update), (.recorded, .update):
            guard let wanted = ledger.wanted, wanted.matches(record) else {
                return notDone(state, ledger, attemptCount, "the back end holds other values than were sent")
            }
            let status = EntryStatus(record.status)
            ledger.confirmed = Confirmed(wanted: wanted, status: status)
            ledger.wanted = nil
            var patch = EntryPatch(status: status, backendID: record.id)
            if status.isClosed, case .live(_, let editPosition) = state.entry, editPosition > ledger.editPosition {
                // What the person asked for meanwhile comes too late.
                (patch.restored, patch.deleteRequested) = (wanted.fields, false)
            }
            return settle(ledger, patch, log: [.init(status: status, message: record.message)])
        }
    }

    /// The back end has no live record.
    private func absent(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        var ledger = ledger
        ledger.backendID = nil
        switch ledger.operation {
        case .create: return again(state, ledger)
        case .update:
            ledger.confirmed = nil
            ledger.wanted = nil
            return settle(
                ledger, EntryPatch(status: .invalid, backendID: .some(nil)),
                log: [.init(status: .invalid, message: "The back end no longer has this entry; submit it again")])
        case .delete:
            ledger.confirmed = nil
            var decision = settle(ledger, EntryPatch(), log: [])
            if case .live = state.entry { decision.entry = .tombstone } else { decision.entry = nil }
            if case .tombstone = state.entry { decision.forgets = true }
            return decision
        }
    }

    /// The record is not what was asked for. When that was found out about an attempt of unknown outcome, the attempt
    /// had no effect; when the back end said that it did it, it is tried again later, a bounded number of times.
    private func notDone(
        _ state: SubmissionState, _ ledger: Ledger, _ attemptCount: Int, _ reason: String
    ) -> SubmissionDecision {
        if ledger.phase == .finding { return again(state, ledger) }
        var ledger = next(ledger, .settled)
        ledger.editPosition = 0
        return SubmissionDecision(
            ledger: ledger, step: .park(reason: reason, after: retryWait(attemptCount), cause: .attempt))
    }

    /// The attempt is over without effect: what the device wants now is begun anew, in the same step.
    private func again(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        var ledger = ledger
        ledger.phase = .settled
        ledger.editPosition = 0
        var decision = begin(state, ledger)
        if decision.ledger == nil { decision.ledger = next(ledger, .settled) }
        return decision
    }

    // MARK: Settling

    /// The entry, or a request about it, is refused: a new one becomes invalid, a known one gets its values back.
    private func refuse(_ messages: [String], _ ledger: Ledger) -> SubmissionDecision {
        var ledger = ledger
        ledger.wanted = nil
        let isDeletion = ledger.phase != .settled && ledger.operation == .delete
        // What was edited before the refused deletion is still wanted: the entry is looked at anew.
        if isDeletion { ledger.editPosition = 0 }
        guard let confirmed = ledger.confirmed, ledger.backendID != nil else {
            // If there is a record, what it holds is told by the next observation of it; the entry is not deleted
            // without it.
            return settle(
                ledger,
                EntryPatch(
                    status: .invalid, backendID: ledger.backendID.map { .some($0) },
                    deleteRequested: isDeletion ? false : nil),
                log: messages.map { .init(status: .invalid, message: $0) })
        }
        return settle(
            ledger,
            EntryPatch(
                status: confirmed.status, deleteRequested: isDeletion ? false : nil,
                restored: isDeletion ? nil : confirmed.wanted.fields),
            log: messages.map { .init(status: confirmed.status, message: $0) })
    }

    private func settle(
        _ ledger: Ledger, _ patch: EntryPatch, log: [SubmissionDecision.LogLine]
    ) -> SubmissionDecision {
        SubmissionDecision(
            ledger: next(ledger, .settled), entry: patch == EntryPatch() ? nil : .patch(patch), log: log,
            step: .finished)
    }

    private func next(_ ledger: Ledger, _ phase: Ledger.Phase) -> Ledger {
        var ledger = ledger
        ledger.version += 1
        ledger.phase = phase
        return ledger
    }
}

extension EntryStatus {
    /// Source: domain facts 1.4, the statuses of CATS.
    init(_ status: BackendStatus) {
        self =
            switch status {
            case .inProcess: .submitted
            case .released: .released
            case .approved: .approved
            case .rejected: .rejected
            case .recorded: .recorded
            case .changed, .cancelled: .invalid
            }
    }
}
