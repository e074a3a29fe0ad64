import BackendProtocol
import Model

/// Records that are read back after a write.
extension SubmissionRule {
    /// Whether a record that differs from what was sent is the back end's altered copy: the back end acknowledged the
    /// write, the record was created for this entry, or the write shows in an approved record.
    func isWritten(_ ledger: Ledger, as record: BackendEntry) -> Bool {
        switch ledger.wanted?.delivery {
        case .unsent: false
        case .acknowledged: true
        case nil: ledger.operation == .create || ledger.phase == .open || showsUpdate(ledger, in: record)
        }
    }

    /// Whether an approved record is what the back end made of an update whose answer was lost: it has another content
    /// than before, and the sent one except for the text. A second write would replace it and need a new approval.
    private func showsUpdate(_ ledger: Ledger, in record: BackendEntry) -> Bool {
        guard record.status == .approved, let wanted = ledger.wanted, let known = ledger.confirmed?.wanted else {
            return false
        }
        return !known.matches(record) && wanted.matchesExceptText(record)
    }

    /// The record is what was sent, or what the back end made of it: then the entry becomes that.
    func take(
        _ record: BackendEntry, _ wanted: Wanted, as status: EntryStatus, _ state: SubmissionState, _ ledger: Ledger
    ) -> SubmissionDecision {
        var ledger = ledger
        let isSame = wanted.matches(record)
        if !isSame, record.marker == nil {
            // Only its id is stored: the next edit writes the marker again.
            ledger.confirmed = nil
            return refuse([Alteration.lostMarker], .refused, ledger, state)
        }
        ledger.confirmed = Confirmed(wanted, kept: isSame ? nil : record, status: status, in: state.objects)
        ledger.wanted = nil
        var patch = EntryPatch(status: status, backendID: record.id)
        if !isSame { patch.restored = ledger.confirmed?.wanted.fields }
        let line = Alteration.line(wanted, as: record, status)
        guard EntryRequest(state.entry, handled: ledger) != .none else {
            return settle(ledger, patch, log: [line], state)
        }
        guard status.isClosed else {
            // Another request was made meanwhile: the entry does not show the earlier one's result.
            return settle(ledger, EntryPatch(backendID: record.id), log: [], state)
        }
        // A request that the person made meanwhile comes too late.
        (patch.restored, patch.deleteRequested) = (ledger.confirmed?.wanted.fields, false)
        patch.submitRequested = true
        return settle(ledger, patch, log: [line], state)
    }
}
