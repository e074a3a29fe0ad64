import BackendProtocol
import KeyedWorker
import Model

/// What an answer of the back end means.
extension SubmissionRule {
    func hear(
        _ answer: SubmissionAnswer, _ state: SubmissionState, _ ledger: Ledger, _ attemptCount: Int
    ) -> SubmissionDecision {
        switch answer {
        case .record(let record):
            return found(record, state, ledger, attemptCount, isWritten: isWritten(ledger, as: record))
        case .successor(let record): return found(record, state, ledger, attemptCount, isWritten: false)
        case .absent: return absent(state, ledger)
        case .ambiguous(let count):
            return SubmissionDecision(
                ledger: next(ledger, .unknown),
                step: .dead(reason: "\(count) \(ParkedReason.severalRecords)"))
        case .refused(let messages) where ledger.phase == .finding:
            // It is the question that is refused, such as when the person's assignment is gone: the record may exist.
            let reason = "the back end refuses to say whether it has the entry: " + messages.joined(separator: "; ")
            return SubmissionDecision(
                ledger: next(ledger, .unknown), lease: settleMin,
                step: .park(reason: reason, after: max(settleMin, retryWait(attemptCount)), cause: .attempt))
        case .refused(let messages):
            // What the back end does not say cannot be shown: then at least that it refused.
            return refuse(
                messages.isEmpty ? ["The back end refused the entry without a reason"] : messages, .refused, ledger,
                state)
        case .notProcessed(let reason, let retryAfter):
            let wait = max(retryAfter ?? .zero, retryWait(attemptCount))
            return SubmissionDecision(
                ledger: nothingHappened(ledger),
                step: .park(reason: reason, after: wait, cause: .away(askingFor: retryAfter)))
        case .notMade:
            return SubmissionDecision(
                ledger: nothingHappened(ledger),
                step: .park(reason: ParkCause.noRoom, after: retryMin, cause: .planned))
        case .unknown(let reason, let recordID, let retryAfter):
            var ledger = next(ledger, .unknown)
            ledger.backendID = recordID ?? ledger.backendID
            if recordID != nil { ledger.wanted?.delivery = .acknowledged }
            // A new record that the back end has named needs no settling to be read; see `absent`.
            let isNamed = recordID != nil && ledger.operation == .create
            let wait = max(isNamed ? retryWait(attemptCount) : settleMin, retryAfter ?? .zero)
            return SubmissionDecision(
                ledger: ledger, lease: min(wait, settleMin),
                step: .park(reason: reason, after: wait, cause: .away(askingFor: retryAfter)))
        }
    }

    /// What was asked for is begun anew, unless the call only asked about an earlier one.
    private func nothingHappened(_ ledger: Ledger) -> Ledger {
        var ledger = next(ledger, ledger.phase == .finding ? .unknown : .settled)
        if ledger.phase == .settled { ledger.editPosition = 0 }
        return ledger
    }

    func retryWait(_ attemptCount: Int) -> Duration {
        min(retryMin * (1 << min(attemptCount, 16)), retryMax)
    }

    /// The back end has the one record.
    ///
    /// - Parameter isWritten: Whether the back end wrote what was sent, even if the record's content differs.
    private func found(
        _ record: BackendEntry, _ state: SubmissionState, _ ledger: Ledger, _ attemptCount: Int, isWritten: Bool
    ) -> SubmissionDecision {
        var ledger = ledger
        ledger.backendID = record.id
        switch (record.status, ledger.operation) {
        case (.changed, _), (.cancelled, _): return absent(state, ledger)
        case (.inProcess, .create), (.inProcess, .update):
            if isWritten { ledger.wanted?.delivery = .acknowledged }
            return SubmissionDecision(
                ledger: next(ledger, .unknown), lease: settleMin,
                step: .park(reason: "the back end has not released the entry yet", after: settleMin, cause: .attempt))
        case (_, .delete): return notDone(state, ledger, attemptCount, "the back end still has the entry")
        case (.released, .create), (.approved, .create), (.rejected, .create), (.recorded, .create),
            (.released, .update), (.approved, .update), (.rejected, .update), (.recorded, .update):
            let status = EntryStatus(record.status)
            guard let wanted = ledger.wanted, isWritten || wanted.matches(record) else {
                if let known = ledger.confirmed?.wanted, !known.matches(record) {
                    ledger.confirmed = Confirmed(known, kept: record, status: status, in: state.objects)
                    ledger.confirmed?.sent = nil
                }
                return notDone(state, ledger, attemptCount, "the back end holds other values than were sent")
            }
            return take(record, wanted, as: status, state, ledger)
        }
    }

    /// The back end has no live record.
    private func absent(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        var ledger = ledger
        let named = ledger.backendID
        ledger.backendID = nil
        switch ledger.operation {
        case .create:
            // It was named, and may only not be there yet: it is made anew once that has settled.
            if let named, ledger.phase == .finding {
                return SubmissionDecision(
                    ledger: next(ledger, .unknown), lease: settleMin,
                    step: .park(reason: "record \(named) is not there yet", after: settleMin, cause: .planned))
            }
            return again(state, ledger)
        case .update:
            ledger.confirmed = nil
            ledger.wanted = nil
            if let entry = movedOn(state, ledger) {
                return settle(
                    ledger, EntryPatch(backendID: .some(nil)),
                    log: [
                        .init(status: entry.status, message: "The back end no longer had this entry", code: .recordGone)
                    ], state)
            }
            return settle(
                ledger, EntryPatch(status: .invalid, backendID: .some(nil)),
                log: [.recordGone], state)
        case .delete:
            ledger.confirmed = nil
            ledger.wanted = nil
            guard case .live(let entry, _) = state.entry else {
                var decision = settle(ledger, EntryPatch(), log: [], state)
                if case .tombstone = state.entry { (decision.forgets, decision.step) = (true, .finished) }
                return decision
            }
            if entry.deleteRequested == true {
                return SubmissionDecision(entry: .tombstone, forgets: true, step: .finished)
            }
            guard movedOn(state, ledger) != nil else { return withdrawn(ledger) }
            guard entry.status.isHandedIn else {
                return settle(ledger, EntryPatch(backendID: .some(nil)), log: [], state)
            }
            guard entry.submitRequested == true else { return withdrawn(ledger) }
            // The next call may have to wait: until then the entry shows no status of the deleted record.
            let log = entry.status == .submitted ? [] : [SubmissionDecision.LogLine(status: .submitted)]
            return settle(ledger, EntryPatch(status: .submitted, backendID: .some(nil)), log: log, state)
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

    /// The attempt is over without effect: what the device wants now is begun anew, in the same step. When it cannot be
    /// called now, what was found out is recorded first: a call that is taken back would take that with it.
    func again(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        var ledger = ledger
        ledger.phase = .settled
        ledger.editPosition = 0
        guard state.canCall else { return SubmissionDecision(ledger: next(ledger, .settled), step: .again) }
        var decision = begin(state, ledger)
        if decision.ledger == nil, decision.step != .check { decision.ledger = next(ledger, .settled) }
        return decision
    }
}
