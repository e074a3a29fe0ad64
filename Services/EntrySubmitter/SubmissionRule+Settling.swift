import BackendProtocol
import Model

/// Settlement of attempts.
extension SubmissionRule {
    /// Refuses the entry or a request about it: a new entry becomes invalid, and an entry with a record is reverted.
    /// Later edits are kept and handled next.
    func refuse(
        _ messages: [String], _ code: TimeEntryStatus.Code, _ ledger: Ledger, _ state: SubmissionState
    ) -> SubmissionDecision {
        let lines = { (status: EntryStatus) in
            messages.map { SubmissionDecision.LogLine(status: status, message: $0, code: code) }
        }
        var ledger = ledger
        ledger.desired = nil
        if ledger.phase != .settled, ledger.operation == .delete { return keep(lines, ledger, state) }
        if let entry = newerEdit(state, ledger) {
            return settle(ledger, EntryPatch(), log: lines(entry.status), state)
        }
        guard let confirmed = ledger.confirmed, ledger.backendID != nil else {
            // If there is a record, the next observation of it reports its content.
            return settle(
                ledger, EntryPatch(status: .invalid, backendID: ledger.backendID.map { .some($0) }),
                log: lines(.invalid), state)
        }
        return settle(
            ledger, EntryPatch(status: confirmed.status, restored: confirmed.desired.fields),
            log: lines(confirmed.status), state)
    }

    /// Keeps an entry after a refused deletion: the back end keeps the record, so the entry stays or is restored.
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
                    step: .deadLettered(
                        reason: "the back end keeps record \(ledger.backendID ?? "?"), whose entry is gone: "
                            + lines(.invalid).compactMap(\.message).joined(separator: "; ")))
            }
            var fields = confirmed.desired.fields
            (fields.status, fields.backendId) = (confirmed.status, ledger.backendID)
            (fields.submitRequested, fields.deleteRequested) = (true, nil)
            return SubmissionDecision(
                ledger: next(ledger, .settled), entry: .put(fields), log: lines(confirmed.status), step: .reprocess)
        case .live(let entry, _):
            var patch = EntryPatch(
                status: status, backendID: ledger.confirmed == nil ? ledger.backendID.map { .some($0) } : nil)
            if entry.deleteRequested == true, status.isClosed {
                // No further write is possible: the entry gets the content of the record.
                (patch.restored, patch.deleteRequested) = (ledger.confirmed?.desired.fields, false)
                patch.submitRequested = true
            } else if entry.deleteRequested == true {
                // Edits before the refused deletion are still requested: the entry is reprocessed.
                ledger.editPosition = 0
                patch.deleteRequested = false
            } else if newerEdit(state, ledger) != nil {
                return settle(ledger, EntryPatch(), log: lines(entry.status), state)
            } else {
                (patch.submitRequested, patch.restored) = (true, ledger.confirmed?.desired.fields)
            }
            return settle(ledger, patch, log: lines(status), state)
        }
    }

    /// Returns the entry if it was edited after the edit that the ledger has handled.
    func newerEdit(_ state: SubmissionState, _ ledger: Ledger) -> TimeEntry? {
        guard case .live(let entry, let editPosition) = state.entry, editPosition > ledger.editPosition else {
            return nil
        }
        return entry
    }

    /// Closes the attempt. A request that the entry has meanwhile is handled next.
    func settle(
        _ ledger: Ledger, _ patch: EntryPatch, log: [SubmissionDecision.LogLine], _ state: SubmissionState
    ) -> SubmissionDecision {
        var hasRequest = false
        switch state.entry {
        case .missing: break
        case .tombstone: hasRequest = true
        case .live(let entry, let editPosition):
            let after = SubmissionState.Entry.live(patch.applied(to: entry), editPosition: editPosition)
            hasRequest = EntryRequest(after, handled: ledger) != .none
        }
        return SubmissionDecision(
            ledger: next(ledger, .settled), entry: patch == EntryPatch() ? nil : .patch(patch), log: log,
            step: hasRequest ? .reprocess : .finished)
    }

    func next(_ ledger: Ledger, _ phase: Ledger.Phase) -> Ledger {
        var ledger = ledger
        ledger.version += 1
        ledger.phase = phase
        return ledger
    }
}

/// Records that were read back after a write.
extension SubmissionRule {
    /// Returns whether a record that differs from the sent one is the back end's altered copy: the back end
    /// acknowledged the write, the record was created for this entry, or an approved record shows the write.
    func isWritten(_ ledger: Ledger, as record: BackendEntry) -> Bool {
        switch ledger.desired?.delivery {
        case .unsent: false
        case .acknowledged: true
        case nil: ledger.operation == .create || ledger.phase == .open || showsUpdate(ledger, in: record)
        }
    }

    /// Returns whether an approved record shows an update with a lost response: it differs from the previous content,
    /// and from the sent one only in the text. A second write would replace it and require a new approval.
    private func showsUpdate(_ ledger: Ledger, in record: BackendEntry) -> Bool {
        guard record.status == .approved, let desired = ledger.desired, let previous = ledger.confirmed?.desired else {
            return false
        }
        return !previous.matches(record) && desired.matchesExceptText(record)
    }

    /// Accepts a record as the result of the write. If the back end altered the values, the entry gets them.
    func accept(
        _ record: BackendEntry, _ desired: DesiredRecord, as status: EntryStatus, _ state: SubmissionState,
        _ ledger: Ledger
    ) -> SubmissionDecision {
        var ledger = ledger
        let isSame = desired.matches(record)
        if !isSame, record.marker == nil {
            // Only the record's id is stored: the next edit writes the marker again.
            ledger.confirmed = nil
            return refuse([Alteration.lostMarker], .refused, ledger, state)
        }
        ledger.confirmed = Confirmed(desired, stored: isSame ? nil : record, status: status, in: state.objects)
        ledger.desired = nil
        var patch = EntryPatch(status: status, backendID: record.id)
        if !isSame { patch.restored = ledger.confirmed?.desired.fields }
        let line = Alteration.line(desired, as: record, status)
        guard EntryRequest(state.entry, handled: ledger) != .none else {
            return settle(ledger, patch, log: [line], state)
        }
        guard status.isClosed else {
            // The person made another request meanwhile: the entry does not show the result of the earlier one.
            return settle(ledger, EntryPatch(backendID: record.id), log: [], state)
        }
        // A closed record cannot be changed: the later request is reverted.
        (patch.restored, patch.deleteRequested) = (ledger.confirmed?.desired.fields, false)
        patch.submitRequested = true
        return settle(ledger, patch, log: [line], state)
    }
}
