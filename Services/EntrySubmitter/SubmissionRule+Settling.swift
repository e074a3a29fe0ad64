import Model

/// How an attempt ends.
extension SubmissionRule {
    /// The entry, or a request about it, is refused: a new one becomes invalid, a known one gets its values back. What
    /// was edited since is left as it is, and asked for in its turn.
    func refuse(
        _ messages: [String], _ code: TimeEntryStatus.Code, _ ledger: Ledger, _ state: SubmissionState
    ) -> SubmissionDecision {
        let lines = { (status: EntryStatus) in
            messages.map { SubmissionDecision.LogLine(status: status, message: $0, code: code) }
        }
        var ledger = ledger
        ledger.wanted = nil
        if ledger.phase != .settled, ledger.operation == .delete { return keep(lines, ledger, state) }
        if let entry = movedOn(state, ledger) {
            return settle(ledger, EntryPatch(), log: lines(entry.status), state)
        }
        guard let confirmed = ledger.confirmed, ledger.backendID != nil else {
            // If there is a record, what it holds is told by the next observation of it.
            return settle(
                ledger, EntryPatch(status: .invalid, backendID: ledger.backendID.map { .some($0) }),
                log: lines(.invalid), state)
        }
        return settle(
            ledger, EntryPatch(status: confirmed.status, restored: confirmed.wanted.fields),
            log: lines(confirmed.status), state)
    }

    /// The back end keeps the record: so the entry stays, or comes back.
    private func keep(
        _ lines: (EntryStatus) -> [SubmissionDecision.LogLine], _ ledger: Ledger, _ state: SubmissionState
    ) -> SubmissionDecision {
        var ledger = ledger
        let status = ledger.confirmed?.status ?? .invalid
        switch state.entry {
        case .missing: return settle(ledger, EntryPatch(), log: [], state)
        case .tombstone:
            guard let confirmed = ledger.confirmed else {
                return SubmissionDecision(
                    ledger: next(ledger, .unknown),
                    step: .dead(
                        reason: "the back end keeps record \(ledger.backendID ?? "?"), whose entry is gone: "
                            + lines(.invalid).compactMap(\.message).joined(separator: "; ")))
            }
            var fields = confirmed.wanted.fields
            (fields.status, fields.backendId) = (confirmed.status, ledger.backendID)
            (fields.submitRequested, fields.deleteRequested) = (true, nil)
            return SubmissionDecision(
                ledger: next(ledger, .settled), entry: .put(fields), log: lines(confirmed.status),
                step: .again)
        case .live(let entry, _):
            var patch = EntryPatch(
                status: status, backendID: ledger.confirmed == nil ? ledger.backendID.map { .some($0) } : nil)
            if entry.deleteRequested == true, status.isClosed {
                // Nothing can be sent any more: the entry becomes what the record holds.
                (patch.restored, patch.deleteRequested) = (ledger.confirmed?.wanted.fields, false)
                patch.submitRequested = true
            } else if entry.deleteRequested == true {
                // What was edited before the refused deletion is still wanted: the entry is looked at anew.
                ledger.editPosition = 0
                patch.deleteRequested = false
            } else if movedOn(state, ledger) != nil {
                return settle(ledger, EntryPatch(), log: lines(entry.status), state)
            } else {
                (patch.submitRequested, patch.restored) = (true, ledger.confirmed?.wanted.fields)
            }
            return settle(ledger, patch, log: lines(status), state)
        }
    }

    /// The entry, when it was edited after what the ledger has handled.
    func movedOn(_ state: SubmissionState, _ ledger: Ledger) -> TimeEntry? {
        guard case .live(let entry, let editPosition) = state.entry, editPosition > ledger.editPosition else {
            return nil
        }
        return entry
    }

    /// Nothing is open any more. What the entry asks for by then is done next.
    func settle(
        _ ledger: Ledger, _ patch: EntryPatch, log: [SubmissionDecision.LogLine], _ state: SubmissionState
    ) -> SubmissionDecision {
        var isMore = false
        switch state.entry {
        case .missing: break
        case .tombstone: isMore = true
        case .live(let entry, let editPosition):
            let after = SubmissionState.Entry.live(patch.applied(to: entry), editPosition: editPosition)
            isMore = EntryRequest(after, handled: ledger) != .none
        }
        return SubmissionDecision(
            ledger: next(ledger, .settled), entry: patch == EntryPatch() ? nil : .patch(patch), log: log,
            step: isMore ? .again : .finished)
    }

    func next(_ ledger: Ledger, _ phase: Ledger.Phase) -> Ledger {
        var ledger = ledger
        ledger.version += 1
        ledger.phase = phase
        return ledger
    }
}
