import BackendProtocol
import FoundationEssentials
import KeyedWorker
import Model

/// Decides when an entry is sent to its back end, and how results are handled (laws 4 and 5).
///
/// - At most one attempt per entry is open, and it is in the ledger before the call.
/// - A record is created only if the back end certainly has none: never attempted, refused, not processed, or looked up
///   and not found after the outcome had time to settle. The ledger of a restored database may lack attempts, so the
///   record is looked up first.
/// - `released` and later statuses are written only from a record that was read back. If the back end altered the sent
///   values, the entry gets the altered ones, and the same values are not sent again.
/// - Only a refusal by the back end or problems of the entry itself make an entry `invalid`. An unavailable back end
///   does not, nor does a choice that became unavailable if the back end has it and the entry was not edited since.
/// - A result applies to the edit that requested it. If the entry was edited meanwhile, nothing is overwritten, and the
///   entry is reprocessed.
struct SubmissionRule: Sendable {
    /// Time after the opening of an attempt during which no other worker may call for the entry. Writes may be sent
    /// until the timeout of one HTTP call before its end (`WriteDeadline`).
    var lease: Duration
    /// Delay before an unknown outcome is looked up.
    var settleMin: Duration
    /// The first delay of the exponential backoff after a failure of the back end, up to `retryMax`.
    var retryMin: Duration
    var retryMax: Duration

    /// Duration of a lease in timeouts of an HTTP call: waiting for a slot, getting a token or reading the current
    /// record, and writing.
    static let leaseCallsMax = 5

    enum Origin: Sendable {
        /// The entry changed, or a deferred key is due.
        case change
        case result(SubmissionResult, version: Int64)
    }

    func decide(_ state: SubmissionState, _ origin: Origin, attemptCount: Int = 0) -> SubmissionDecision {
        let ledger = state.ledger ?? Ledger()
        switch origin {
        case .change: return evaluate(state, ledger)
        case .result(let result, let version):
            // The result of an attempt that is no longer the open one is ignored.
            switch ledger.phase {
            case .unknown, .settled: return evaluate(state, ledger)
            case .open, .finding: break
            }
            guard ledger.version == version else { return evaluate(state, ledger) }
            return handle(result, state, ledger, attemptCount)
        }
    }

    // MARK: Evaluation

    private func evaluate(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        switch ledger.phase {
        case .open:
            // A call of another worker, or of one that crashed. It can no longer be sent after the lease.
            let wait = ledger.leaseRemaining + settleMin
            if wait > .zero { return postpone(wait, "a call for the entry may be in flight") }
            return lookUp(ledger)
        case .finding:
            if ledger.leaseRemaining > .zero {
                return postpone(ledger.leaseRemaining, "a lookup of the entry may be in flight")
            }
            return lookUp(ledger)
        case .unknown:
            if ledger.leaseRemaining > .zero {
                return postpone(ledger.leaseRemaining, "the outcome of the last call is unknown")
            }
            return lookUp(ledger)
        case .settled: return start(state, ledger)
        }
    }

    func postpone(_ wait: Duration, _ reason: String) -> SubmissionDecision {
        SubmissionDecision(step: .deferred(reason: reason, after: wait, cause: .planned))
    }

    /// Starts the requested operation if no attempt is open.
    func start(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        let request = EntryRequest(state.entry, handled: ledger)
        var ledger = ledger
        if state.isRecordShared { ledger.backendID = nil }
        switch state.entry {
        case .missing: return SubmissionDecision(step: .finished)
        case .tombstone:
            if let id = ledger.backendID { return open(.delete, .delete(id: id), ledger, nil) }
            return SubmissionDecision(removesLedger: state.ledger != nil, step: .finished)
        case .live(let entry, let editPosition):
            switch request {
            case .none: return SubmissionDecision(step: .finished)
            case .submission: return submit(state, entry, editPosition, ledger)
            case .withdrawal: return withdraw(editPosition, ledger)
            case .deletion:
                guard let id = ledger.backendID else {
                    // The ledger row of an id of another realm is kept.
                    return SubmissionDecision(entry: .tombstone, removesLedger: !state.isForeignID, step: .finished)
                }
                ledger.editPosition = editPosition
                return open(.delete, .delete(id: id), ledger, nil)
            }
        }
    }

    /// Deletes the record; the entry becomes a draft afterwards.
    private func withdraw(_ editPosition: Int64, _ ledger: Ledger) -> SubmissionDecision {
        var ledger = ledger
        ledger.editPosition = editPosition
        guard let id = ledger.backendID else { return withdrawn(ledger) }
        return open(.delete, .delete(id: id), ledger, nil)
    }

    func withdrawn(_ ledger: Ledger) -> SubmissionDecision {
        var decision = SubmissionDecision(
            ledger: next(ledger, .settled), entry: .patch(EntryPatch(status: .draft, backendID: .some(nil))),
            step: .finished)
        decision.log = [.init(status: .draft, message: "Withdrawn", code: .withdrawn)]
        return decision
    }

    private func submit(
        _ state: SubmissionState, _ entry: TimeEntry, _ editPosition: Int64, _ ledger: Ledger
    ) -> SubmissionDecision {
        if state.isForeignID { return rejectForeignID(entry) }
        var ledger = ledger
        ledger.editPosition = editPosition
        if state.isPersonUnknown {
            return SubmissionDecision(
                step: .deadLettered(reason: DeferralReason.unknownPerson))
        }
        guard state.isValidated else { return SubmissionDecision(step: .validate) }
        guard state.problems.isEmpty, let desired = state.desired else {
            if state.isLedgerLost {
                // The back end accepted a choice that is no longer available; only the ledger is lost.
                let reason = "the entry is \(entry.status.rawValue), its ledger is lost, and it cannot be sent: "
                return SubmissionDecision(
                    step: .deferred(
                        reason: reason + state.problems.joined(separator: "; "), after: retryMax, cause: .attempt))
            }
            return refuse(state.problems, .problem, ledger, state)
        }
        if let confirmed = ledger.confirmed, ledger.backendID != nil, confirmed.desired.isSameRecord(as: desired) {
            // The edit changed nothing that the back end stores.
            let log = entry.status == confirmed.status ? [] : [SubmissionDecision.LogLine(status: confirmed.status)]
            return settle(ledger, EntryPatch(status: confirmed.status), log: log, state)
        }
        if let confirmed = ledger.confirmed, ledger.backendID != nil, let sent = confirmed.sent,
            sent.isSameRecord(as: desired), sent.differsOnlyInText(from: confirmed.desired)
        {
            // The back end would alter the text in the same way. Differences of other values were made by a person.
            let line = SubmissionDecision.LogLine(
                status: confirmed.status, message: Alteration.message(desired, as: confirmed.desired), code: .altered)
            return settle(
                ledger, EntryPatch(status: confirmed.status, restored: confirmed.desired.fields), log: [line], state)
        }
        ledger.desired = desired
        if ledger.backendID == nil, let since = state.sinceRestore {
            let wait = lease + settleMin - since
            if wait > .zero { return postpone(wait, "a call from before the restore may be in flight") }
            var decision = open(.create, .find(id: nil, days: [desired.day]), ledger, entry.status)
            decision.ledger?.phase = .finding
            decision.ledger?.desired?.delivery = .unsent
            return decision
        }
        let action: SubmissionCall.Action =
            if let id = ledger.backendID { .update(id: id, desired) } else { .create(desired) }
        return open(ledger.backendID == nil ? .create : .update, action, ledger, entry.status)
    }

    /// Rejects an entry whose id is the marker of another realm's record, without a call and without a ledger. It is
    /// logged once, because no ledger stores the edit.
    private func rejectForeignID(_ entry: TimeEntry) -> SubmissionDecision {
        if entry.status == .invalid { return SubmissionDecision(step: .finished) }
        return SubmissionDecision(
            entry: .patch(EntryPatch(status: .invalid)),
            log: [
                .init(
                    status: .invalid, message: "This id is another person's entry; make a new entry", code: .idTaken)
            ],
            step: .finished)
    }

    /// Opens an attempt, which is written to the ledger before the call.
    func open(
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

    /// Looks up the outcome of an attempt.
    func lookUp(_ ledger: Ledger) -> SubmissionDecision {
        let days = Set([ledger.desired?.day, ledger.confirmed?.desired.day].compactMap { $0 }).sorted()
        var decision = open(ledger.operation, .find(id: ledger.backendID, days: days), ledger, nil)
        decision.ledger?.phase = .finding
        return decision
    }
}

extension EntryStatus {
    /// Source: the statuses of SAP's CATS.
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
