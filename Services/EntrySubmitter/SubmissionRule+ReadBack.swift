import BackendProtocol
import Model

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
