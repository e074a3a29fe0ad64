import BackendProtocol
import KeyedWorker
import Model

/// Handling of a call's result.
extension SubmissionRule {
    func handle(
        _ result: SubmissionResult, _ state: SubmissionState, _ ledger: Ledger, _ attemptCount: Int
    ) -> SubmissionDecision {
        switch result {
        case .record(let record):
            return handleRecord(record, state, ledger, attemptCount, isWritten: isWritten(ledger, as: record))
        case .successor(let record): return handleRecord(record, state, ledger, attemptCount, isWritten: false)
        case .absent: return handleAbsence(state, ledger)
        case .ambiguous(let ids):
            return SubmissionDecision(
                ledger: next(ledger, .unknown), step: .deadLettered(reason: DeferralReason.withRecords(ids)))
        case .refused(let messages) where ledger.phase == .finding:
            // The lookup is refused, for example because the person's assignment was removed: the record may exist.
            let reason = "the back end refuses the lookup of the entry: " + messages.joined(separator: "; ")
            return SubmissionDecision(
                ledger: next(ledger, .unknown), lease: settleMin,
                step: .deferred(reason: reason, after: max(settleMin, retryWait(attemptCount)), cause: .attempt))
        case .refused(let messages):
            // The back end gave no reason.
            return refuse(
                messages.isEmpty ? ["The back end refused the entry without a reason"] : messages, .refused, ledger,
                state)
        case .notProcessed(let reason, let retryAfter):
            let wait = max(retryAfter ?? .zero, retryWait(attemptCount))
            return SubmissionDecision(
                ledger: withoutEffect(ledger),
                step: .deferred(reason: reason, after: wait, cause: .unavailable(retryAfter: retryAfter)))
        case .notMade:
            return SubmissionDecision(
                ledger: withoutEffect(ledger),
                step: .deferred(reason: DeferralCause.noFreeSlot, after: retryMin, cause: .planned))
        case .unknown(let reason, let recordID, let retryAfter):
            var ledger = next(ledger, .unknown)
            ledger.backendID = recordID ?? ledger.backendID
            if recordID != nil { ledger.desired?.delivery = .acknowledged }
            // A new record with a returned id can be read without settling; see `handleAbsence`.
            let isNamed = recordID != nil && ledger.operation == .create
            let wait = max(isNamed ? retryWait(attemptCount) : settleMin, retryAfter ?? .zero)
            return SubmissionDecision(
                ledger: ledger, lease: min(wait, settleMin),
                step: .deferred(reason: reason, after: wait, cause: .unavailable(retryAfter: retryAfter)))
        }
    }

    /// Returns the ledger after a call without effect: the request is restarted, unless the call was a lookup.
    private func withoutEffect(_ ledger: Ledger) -> Ledger {
        var ledger = next(ledger, ledger.phase == .finding ? .unknown : .settled)
        if ledger.phase == .settled { ledger.editPosition = 0 }
        return ledger
    }

    func retryWait(_ attemptCount: Int) -> Duration {
        min(retryMin * (1 << min(attemptCount, 16)), retryMax)
    }

    /// Handles the single record of the back end.
    ///
    /// - Parameter isWritten: Whether the back end wrote the sent values, even if the record's content differs.
    private func handleRecord(
        _ record: BackendEntry, _ state: SubmissionState, _ ledger: Ledger, _ attemptCount: Int, isWritten: Bool
    ) -> SubmissionDecision {
        var ledger = ledger
        ledger.backendID = record.id
        switch (record.status, ledger.operation) {
        case (.changed, _), (.cancelled, _): return handleAbsence(state, ledger)
        case (.inProcess, .create), (.inProcess, .update):
            if isWritten { ledger.desired?.delivery = .acknowledged }
            return SubmissionDecision(
                ledger: next(ledger, .unknown), lease: settleMin,
                step: .deferred(
                    reason: "the back end has not released the entry yet", after: settleMin, cause: .attempt))
        case (_, .delete): return handleUnapplied(state, ledger, attemptCount, "the back end still has the entry")
        case (.released, .create), (.approved, .create), (.rejected, .create), (.recorded, .create),
            (.released, .update), (.approved, .update), (.rejected, .update), (.recorded, .update):
            let status = EntryStatus(record.status)
            guard let desired = ledger.desired, isWritten || desired.matches(record) else {
                if let previous = ledger.confirmed?.desired, !previous.matches(record) {
                    ledger.confirmed = Confirmed(previous, stored: record, status: status, in: state.objects)
                    ledger.confirmed?.sent = nil
                }
                return handleUnapplied(state, ledger, attemptCount, "the back end has other values than were sent")
            }
            return accept(record, desired, as: status, state, ledger)
        }
    }

    /// Handles the absence of a live record.
    private func handleAbsence(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        var ledger = ledger
        let returnedID = ledger.backendID
        ledger.backendID = nil
        switch ledger.operation {
        case .create:
            // The back end returned an id, so the record may only be invisible: it is created again after settling.
            if let returnedID, ledger.phase == .finding {
                return SubmissionDecision(
                    ledger: next(ledger, .unknown), lease: settleMin,
                    step: .deferred(
                        reason: "record \(returnedID) is not visible yet", after: settleMin, cause: .planned))
            }
            return restart(state, ledger)
        case .update:
            ledger.confirmed = nil
            ledger.desired = nil
            if let entry = newerEdit(state, ledger) {
                return settle(
                    ledger, EntryPatch(backendID: .some(nil)),
                    log: [
                        .init(status: entry.status, message: "The back end no longer had this entry", code: .recordGone)
                    ], state)
            }
            return settle(ledger, EntryPatch(status: .invalid, backendID: .some(nil)), log: [.recordGone], state)
        case .delete:
            ledger.confirmed = nil
            ledger.desired = nil
            guard case .live(let entry, _) = state.entry else {
                var decision = settle(ledger, EntryPatch(), log: [], state)
                if case .tombstone = state.entry { (decision.removesLedger, decision.step) = (true, .finished) }
                return decision
            }
            if entry.deleteRequested == true {
                return SubmissionDecision(entry: .tombstone, removesLedger: true, step: .finished)
            }
            guard newerEdit(state, ledger) != nil else { return withdrawn(ledger) }
            guard entry.status.isHandedIn else {
                return settle(ledger, EntryPatch(backendID: .some(nil)), log: [], state)
            }
            guard entry.submitRequested == true else { return withdrawn(ledger) }
            // The next call may be deferred: meanwhile the entry must not show a status of the deleted record.
            let log = entry.status == .submitted ? [] : [SubmissionDecision.LogLine(status: .submitted)]
            return settle(ledger, EntryPatch(status: .submitted, backendID: .some(nil)), log: log, state)
        }
    }

    /// Handles a record that differs from the request. After a lookup, the attempt had no effect. After an acknowledged
    /// write, the write is retried, up to the maximum number of attempts.
    private func handleUnapplied(
        _ state: SubmissionState, _ ledger: Ledger, _ attemptCount: Int, _ reason: String
    ) -> SubmissionDecision {
        if ledger.phase == .finding { return restart(state, ledger) }
        var ledger = next(ledger, .settled)
        ledger.editPosition = 0
        return SubmissionDecision(
            ledger: ledger, step: .deferred(reason: reason, after: retryWait(attemptCount), cause: .attempt))
    }

    /// Starts the current request in the same step, after an attempt without effect. If no call can be made now, the
    /// result is recorded first: a withheld call would roll it back.
    func restart(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        var ledger = ledger
        ledger.phase = .settled
        ledger.editPosition = 0
        guard state.canCall else { return SubmissionDecision(ledger: next(ledger, .settled), step: .reprocess) }
        var decision = start(state, ledger)
        if decision.ledger == nil, decision.step != .validate { decision.ledger = next(ledger, .settled) }
        return decision
    }
}
