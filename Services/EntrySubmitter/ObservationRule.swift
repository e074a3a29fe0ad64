import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model

/// Decides how the poller's observation of a record affects its entry.
///
/// An observation is a hint, because it may be older than a completed write of the submitter. If it differs from the
/// confirmed state, the record is read again. That result counts only if nothing was written to the back end meanwhile
/// (the ledger has the version of the read, and nothing is open). The observation waits while an attempt is open, its
/// outcome is unknown, or a request of the device is pending.
struct ObservationRule: Sendable {
    /// Delay of an observation that must wait.
    var waitMin: Duration
    /// The first delay of the exponential backoff after a failure of the back end, up to `retryMax`.
    var retryMin: Duration
    var retryMax: Duration

    /// The reason for a decision; `change`: the observation changed, or is due again.
    typealias Origin = SubmissionRule.Origin

    /// - Parameters:
    ///   - state: The entry and its ledger; its problems and desired record are not used.
    ///   - observed: The observed record, or the record that was read again if `origin` is such a result; `nil` if it
    ///     is deleted.
    func decide(
        _ state: SubmissionState, observed: Observation?, _ origin: Origin, attemptCount: Int = 0
    ) -> SubmissionDecision {
        if state.isForeignID { return SubmissionDecision(step: .finished) }
        if let reason = obstacle(in: state) {
            return SubmissionDecision(step: .deferred(reason: reason, after: waitMin, cause: .planned))
        }
        if case .live(let entry, _) = state.entry, entry.status.isClosed { return SubmissionDecision(step: .finished) }
        switch origin {
        case .result(let result, let version) where version == (state.ledger?.version ?? 0):
            return handle(result, observed, state, attemptCount)
        case .change, .result: return evaluate(observed, state)
        }
    }

    // MARK: Evaluation

    /// Returns the reason why the observation must wait, if any.
    private func obstacle(in state: SubmissionState) -> String? {
        switch state.ledger?.phase {
        case .open, .finding, .unknown: return "a call for the entry may be in flight, or its outcome is unknown"
        case .settled, nil: break
        }
        switch EntryRequest(state.entry, handled: state.ledger ?? Ledger()) {
        case .none: return nil
        case .deletion: return "the deletion of the entry is pending"
        case .submission, .withdrawal: return "a request of the device is pending"
        }
    }

    private func evaluate(_ observed: Observation?, _ state: SubmissionState) -> SubmissionDecision {
        guard let observed, EntryStatus(observed: observed.record.status) != nil else {
            return hasRecord(state) ? reread(nil, state) : SubmissionDecision(step: .finished)
        }
        if isConfirmed(observed, state) { return adopt(observed, state) }
        switch state.entry {
        // The submitter cannot have changed a record that was created elsewhere.
        case .missing where state.ledger == nil && observed.record.marker == nil: return accept(observed, state)
        case .missing, .tombstone, .live: return reread(observed, state)
        }
    }

    /// Returns whether the entry has a record.
    private func hasRecord(_ state: SubmissionState) -> Bool {
        if state.ledger?.backendID != nil { return true }
        if case .live(let entry, _) = state.entry { return entry.backendId != nil }
        return false
    }

    private func reread(_ observed: Observation?, _ state: SubmissionState) -> SubmissionDecision {
        if state.isPersonUnknown {
            return SubmissionDecision(
                step: .deadLettered(reason: DeferralReason.unknownPerson))
        }
        var days = [observed?.record.day, state.ledger?.confirmed?.desired.day]
        if case .live(let entry, _) = state.entry { days.append(entry.entryDate) }
        let id = observed?.record.id ?? state.ledger?.backendID
        return SubmissionDecision(
            step: .call(
                SubmissionCall(
                    action: .find(id: id, days: Set(days.compactMap(\.self)).sorted()),
                    version: state.ledger?.version ?? 0)))
    }

    /// Returns whether the observation equals the confirmed state.
    private func isConfirmed(_ observed: Observation, _ state: SubmissionState) -> Bool {
        guard case .live(let entry, let editPosition) = state.entry, entry.backendId == observed.record.id,
            entry.status == status(of: observed.record, for: entry), !observed.resolvesReporting
        else { return false }
        if let confirmed = state.ledger?.confirmed { return confirmed.desired.matches(observed.record) }
        // The entry was created from the record; later edits by the person do not concern the back end.
        return editPosition > 0
            || observed.desired.day == entry.entryDate && observed.desired.text ?? "" == entry.text ?? ""
                && Hours(seconds: observed.record.durationSeconds) == Hours(seconds: entry.durationSeconds ?? 0)
    }

    // MARK: Results

    private func handle(
        _ result: SubmissionResult, _ observed: Observation?, _ state: SubmissionState, _ attemptCount: Int
    ) -> SubmissionDecision {
        let retryWait = min(retryMin * (1 << min(attemptCount, 16)), retryMax)
        switch result {
        case .record(let record), .successor(let record):
            guard let observed, EntryStatus(observed: record.status) != nil else { return handleDeletion(state) }
            return isConfirmed(observed, state) ? adopt(observed, state) : accept(observed, state)
        case .absent: return handleDeletion(state)
        case .ambiguous(let ids):
            return SubmissionDecision(step: .deadLettered(reason: DeferralReason.withRecords(ids)))
        case .refused(let messages):
            let reason = "the back end refuses the lookup of the entry: " + messages.joined(separator: "; ")
            return SubmissionDecision(step: .deferred(reason: reason, after: retryWait, cause: .attempt))
        case .notProcessed(let reason, let retryAfter):
            let wait = max(retryAfter ?? .zero, retryWait)
            return SubmissionDecision(
                step: .deferred(reason: reason, after: wait, cause: .unavailable(retryAfter: retryAfter)))
        case .notMade:
            return SubmissionDecision(
                step: .deferred(reason: DeferralCause.noFreeSlot, after: retryMin, cause: .planned))
        case .unknown(let reason, _, _):
            return SubmissionDecision(step: .deferred(reason: reason, after: retryWait, cause: .backendUnavailable))
        }
    }

    // MARK: Writing

    /// Confirms the record of an entry without a confirmed state.
    private func adopt(_ observed: Observation, _ state: SubmissionState) -> SubmissionDecision {
        guard state.ledger?.confirmed == nil, case .live(let entry, _) = state.entry else {
            return SubmissionDecision(step: .finished)
        }
        return SubmissionDecision(ledger: settled(observed, entry.status, state), step: .finished)
    }

    /// Updates the entry to the back end's record, or creates it.
    private func accept(_ observed: Observation, _ state: SubmissionState) -> SubmissionDecision {
        guard case .live(let entry, _) = state.entry else {
            guard let status = status(of: observed.record, for: nil) else { return handleDeletion(state) }
            var fields = observed.desired.fields
            fields.status = status
            return SubmissionDecision(
                ledger: settled(observed, status, state), entry: .put(fields),
                log: [.init(status: status, message: observed.record.message)], step: .finished)
        }
        guard let status = status(of: observed.record, for: entry) else { return handleDeletion(state) }
        var patch = EntryPatch()
        if entry.backendId != observed.record.id { patch.backendID = observed.record.id }
        let areValuesConfirmed = state.ledger?.confirmed?.desired.matches(observed.record) ?? false
        if !areValuesConfirmed || observed.resolvesReporting { patch.restored = observed.desired.fields }
        var log: [SubmissionDecision.LogLine] = []
        if entry.status != status {
            patch.status = status
            log = [
                .init(status: status, message: observed.record.message, code: areValuesConfirmed ? nil : .recordChanged)
            ]
        } else if !areValuesConfirmed {
            log = [.init(status: status, message: "Changed in the back end", code: .recordChanged)]
        }
        return SubmissionDecision(
            ledger: settled(observed, status, state), entry: patch == EntryPatch() ? nil : .patch(patch), log: log,
            step: .finished)
    }

    /// Handles a deleted record. An entry with a person's input is kept for another submission; an entry that came from
    /// the back end only is deleted too.
    private func handleDeletion(_ state: SubmissionState) -> SubmissionDecision {
        guard case .live(let entry, let editPosition) = state.entry, hasRecord(state) else {
            return SubmissionDecision(step: .finished)
        }
        if entry.submitRequested != true, editPosition == 0 {
            return SubmissionDecision(entry: .tombstone, removesLedger: state.ledger != nil, step: .finished)
        }
        var ledger = state.ledger ?? Ledger()
        ledger.version += 1
        ledger.backendID = nil
        ledger.confirmed = nil
        return SubmissionDecision(
            ledger: ledger, entry: .patch(EntryPatch(status: .invalid, backendID: .some(nil))),
            log: [.recordGone], step: .finished)
    }

    private func settled(_ observed: Observation, _ status: EntryStatus, _ state: SubmissionState) -> Ledger {
        var ledger = state.ledger ?? Ledger()
        ledger.version += 1
        ledger.phase = .settled
        ledger.backendID = observed.record.id
        ledger.desired = nil
        let confirmed = ledger.confirmed.flatMap { $0.desired.matches(observed.record) ? $0 : nil }
        ledger.confirmed = Confirmed(desired: observed.desired, status: status, sent: confirmed?.sent)
        return ledger
    }

    /// Returns the entry status of a record. A record that is not released is a draft if the entry was never more than
    /// that.
    private func status(of record: BackendEntry, for entry: TimeEntry?) -> EntryStatus? {
        guard record.status == .inProcess, let entry else { return EntryStatus(observed: record.status) }
        switch entry.status {
        case .draft, .suggestion: return .draft
        case .submitted, .invalid, .released, .rejected, .approved, .recorded: return .submitted
        }
    }
}

/// A record of the back end, with its interpretation in the person's realm.
struct Observation: Equatable, Sendable {
    var record: BackendEntry
    var desired: DesiredRecord
    /// Whether references that were unresolvable when the entry was created can be resolved now.
    var resolvesReporting = false
}

extension Observation {
    /// - Parameters:
    ///   - entry: The existing entry: values that the back end does not store or did not change are kept.
    ///   - confirmed: The confirmed record before.
    init(_ record: BackendEntry, over entry: TimeEntry?, confirmed: DesiredRecord?, in objects: ReportingObjects) {
        var fields = entry ?? TimeEntry()
        fields.backendId = record.id
        fields.text = record.text
        fields.entryDate = record.day
        let knownSeconds = entry?.seconds
        if knownSeconds.map(Hours.init(seconds:)) != Hours(seconds: record.durationSeconds) || confirmed == nil {
            fields.timeType = .duration
            fields.durationSeconds = record.durationSeconds
            fields.startTime = nil
            fields.endTime = nil
        }
        var references = record.references
        if let confirmed, confirmed.hasReferences(of: record) {
            references = confirmed.references
            fields.reporting = confirmed.fields.reporting
            fields.reportingTemplate = confirmed.fields.reportingTemplate
        } else {
            let meaning = ReportingData(objects).meaning(of: record.references, preferring: entry?.reportingTemplate)
            fields.reportingTemplate = meaning.template ?? entry?.reportingTemplate
            fields.reporting = meaning.selections
            for selection in objects.selections(of: fields) {
                guard references[selection.name] == nil, let node = selection.nodes.first else { continue }
                references[selection.name] = objects.nodes[node]?.referenceId
            }
        }
        self.record = record
        desired = DesiredRecord(
            day: record.day, durationSeconds: record.durationSeconds, text: record.text, references: references,
            fields: fields)
    }
}

extension ReportingData {
    /// Creates reporting data from stored objects, in a deterministic order.
    init(_ objects: ReportingObjects) {
        func sorted<Fields>(_ objects: [UUID: Fields]) -> [Identified<Fields>] {
            objects.map { Identified(id: $0.key, fields: $0.value) }.sorted { $0.id < $1.id }
        }
        let templates = sorted(objects.templates)
        let order = templates.flatMap(\.fields.reportingContexts)
        let contexts = sorted(objects.contexts).sorted {
            (order.firstIndex(of: $0.id) ?? .max) < (order.firstIndex(of: $1.id) ?? .max)
        }
        self.init(nodes: sorted(objects.nodes), contexts: contexts, templates: templates)
    }
}
