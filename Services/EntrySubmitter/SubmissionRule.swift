import BackendProtocol
import FoundationEssentials
import KeyedWorker
import Model

/// When an entry is sent to its back end, and what its answers mean (laws 4 and 5).
///
/// - At most one attempt is open per entry, and it is in the ledger before the call.
/// - A record is created only when the back end is known to have none: never tried, refused, certainly not processed,
///   or looked up after its outcome had time to settle and not found. A ledger of a restored database may not know what
///   was tried: then it is looked up first.
/// - `released` and what follows it are written only from a record that was read back. Where the back end made
///   something else of what was sent, the entry becomes what it made, and the same is not sent again.
/// - Only the back end's refusal, or the entry's own problems, make an entry `invalid`; a back end that is away never,
///   nor what a person can no longer choose where the back end has it and nobody has edited it since.
/// - What is settled is settled for the edit it was asked by. When the entry has moved on meanwhile nothing of it is
///   overwritten, and it is decided again by what it is then.
struct SubmissionRule: Sendable {
    /// How long nobody else may call for an entry after an attempt was opened. A write may be sent until the longest
    /// time of one HTTP call before it ends (`WriteDeadline`).
    var lease: Duration
    /// How long an unknown outcome waits before the back end is asked.
    var settleMin: Duration
    /// The first wait after a back end that could not work; it doubles up to `retryMax`.
    var retryMin: Duration
    var retryMax: Duration

    /// How many of the longest HTTP calls a lease lasts: waiting for a place, getting a token or reading what is to be
    /// changed, and writing.
    static let leaseCallsMax = 5

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

    func wait_(_ wait: Duration, _ reason: String) -> SubmissionDecision {
        SubmissionDecision(step: .park(reason: reason, after: wait, cause: .planned))
    }

    /// Nothing is open: begins what the device asks for.
    func begin(_ state: SubmissionState, _ ledger: Ledger) -> SubmissionDecision {
        let request = EntryRequest(state.entry, handled: ledger)
        var ledger = ledger
        if state.isRecordShared { ledger.backendID = nil }
        switch state.entry {
        case .missing: return SubmissionDecision(step: .finished)
        case .tombstone:
            if let id = ledger.backendID { return open(.delete, .delete(id: id), ledger, nil) }
            return SubmissionDecision(forgets: state.ledger != nil, step: .finished)
        case .live(let entry, let editPosition):
            switch request {
            case .none: return SubmissionDecision(step: .finished)
            case .submission: return submit(state, entry, editPosition, ledger)
            case .withdrawal: return withdraw(editPosition, ledger)
            case .deletion:
                guard let id = ledger.backendID else {
                    // The ledger of an id that is another's stays.
                    return SubmissionDecision(entry: .tombstone, forgets: !state.isAnothers, step: .finished)
                }
                ledger.editPosition = editPosition
                return open(.delete, .delete(id: id), ledger, nil)
            }
        }
    }

    /// The record goes, and the entry is a draft again once it has.
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
        if state.isAnothers { return refuseAnothers(entry) }
        var ledger = ledger
        ledger.editPosition = editPosition
        if state.isPersonUnknown {
            return SubmissionDecision(
                step: .dead(reason: ParkedReason.unknownPerson))
        }
        guard state.isChecked else { return SubmissionDecision(step: .check) }
        guard state.problems.isEmpty, let wanted = state.wanted else {
            if state.isAnswered {
                // The back end took what can no longer be chosen: only that Fieldpost knows of it is lost.
                let reason = "it is \(entry.status.rawValue), its ledger is lost, and it cannot be sent as it is: "
                return SubmissionDecision(
                    step: .park(
                        reason: reason + state.problems.joined(separator: "; "), after: retryMax, cause: .attempt))
            }
            return refuse(state.problems, .problem, ledger, state)
        }
        if let confirmed = ledger.confirmed, ledger.backendID != nil, confirmed.wanted.isSameRecord(as: wanted) {
            // The edit changed nothing the back end keeps.
            let log = entry.status == confirmed.status ? [] : [SubmissionDecision.LogLine(status: confirmed.status)]
            return settle(ledger, EntryPatch(status: confirmed.status), log: log, state)
        }
        if let confirmed = ledger.confirmed, ledger.backendID != nil, let sent = confirmed.sent,
            sent.isSameRecord(as: wanted), sent.differsOnlyInText(from: confirmed.wanted)
        {
            // The back end would alter the text in the same way. Other values were changed there by a person.
            let line = SubmissionDecision.LogLine(
                status: confirmed.status, message: Alteration.message(wanted, as: confirmed.wanted), code: .altered)
            return settle(
                ledger, EntryPatch(status: confirmed.status, restored: confirmed.wanted.fields), log: [line], state)
        }
        ledger.wanted = wanted
        if ledger.backendID == nil, let since = state.sinceRestore {
            let wait = lease + settleMin - since
            if wait > .zero { return wait_(wait, "a call from before the restore may be under way") }
            var decision = open(.create, .find(id: nil, days: [wanted.day]), ledger, entry.status)
            decision.ledger?.phase = .finding
            decision.ledger?.wanted?.delivery = .unsent
            return decision
        }
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
            log: [
                .init(
                    status: .invalid, message: "This id is another person's entry; make a new entry", code: .idTaken)
            ],
            step: .finished)
    }

    /// Opens an attempt: the ledger says so before the call is made.
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

    /// Asks the back end what became of an attempt.
    func find(_ ledger: Ledger) -> SubmissionDecision {
        let days = Set([ledger.wanted?.day, ledger.confirmed?.wanted.day].compactMap { $0 }).sorted()
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
