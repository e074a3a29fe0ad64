import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model

/// What the poller's observation of a record means for its entry.
///
/// An observation was made a while ago, perhaps before a write of our own that is done by now. So it is a hint: when it
/// says something else than what is known, the record is read again, and the answer counts only if nothing was written
/// to the back end meanwhile (the ledger is at the version it was read at, and nothing is open). While an attempt is
/// open, its outcome unknown, or a request of the device still to be sent, the observation waits.
struct ObservationRule: Sendable {
    /// How long an observation waits for what is under way.
    var waitMin: Duration
    /// The first wait after a back end that could not work; it doubles up to `retryMax`.
    var retryMin: Duration
    var retryMax: Duration

    enum Origin: Sendable {
        /// The observation changed, or is due again.
        case look
        case answer(SubmissionAnswer, version: Int64)
    }

    /// - Parameters:
    ///   - state: The entry and its ledger; its problems and what the device wants do not matter here.
    ///   - seen: The record that was observed, or read again when `origin` is an answer with one; `nil`: it is gone.
    func decide(
        _ state: SubmissionState, seen: Observation?, _ origin: Origin, attemptCount: Int = 0
    ) -> SubmissionDecision {
        if state.isAnothers { return SubmissionDecision(step: .finished) }
        if let reason = obstacle(in: state) {
            return SubmissionDecision(step: .park(reason: reason, after: waitMin, cause: .planned))
        }
        if case .live(let entry, _) = state.entry, entry.status.isClosed { return SubmissionDecision(step: .finished) }
        switch origin {
        case .answer(let answer, let version) where version == (state.ledger?.version ?? 0):
            return hear(answer, seen, state, attemptCount)
        case .look, .answer: return look(seen, state)
        }
    }

    // MARK: Looking

    /// What has to be over first.
    private func obstacle(in state: SubmissionState) -> String? {
        switch state.ledger?.phase {
        case .open, .finding, .unknown: return "a call for the entry may be under way, or its outcome is unknown"
        case .settled, nil: break
        }
        switch EntryRequest(state.entry, handled: state.ledger ?? Ledger()) {
        case .none: return nil
        case .deletion: return "the entry is still to be deleted"
        case .submission, .withdrawal: return "the device's own request is handled first"
        }
    }

    private func look(_ seen: Observation?, _ state: SubmissionState) -> SubmissionDecision {
        guard let seen, EntryStatus(observed: seen.record.status) != nil else {
            return isKnown(state) ? readAgain(nil, state) : SubmissionDecision(step: .finished)
        }
        if agrees(seen, state) { return adopt(seen, state) }
        switch state.entry {
        // Nothing of ours can have touched a record that was made elsewhere.
        case .missing where state.ledger == nil && seen.record.marker == nil: return take(seen, state)
        case .missing, .tombstone, .live: return readAgain(seen, state)
        }
    }

    /// Whether the entry counts as one that the back end has.
    private func isKnown(_ state: SubmissionState) -> Bool {
        if state.ledger?.backendID != nil { return true }
        if case .live(let entry, _) = state.entry { return entry.backendId != nil }
        return false
    }

    private func readAgain(_ seen: Observation?, _ state: SubmissionState) -> SubmissionDecision {
        if state.isPersonUnknown {
            return SubmissionDecision(
                step: .dead(reason: ParkedReason.unknownPerson))
        }
        var days = [seen?.record.day, state.ledger?.confirmed?.wanted.day]
        if case .live(let entry, _) = state.entry { days.append(entry.entryDate) }
        let id = seen?.record.id ?? state.ledger?.backendID
        return SubmissionDecision(
            step: .call(
                SubmissionCall(
                    action: .find(id: id, days: Set(days.compactMap(\.self)).sorted()),
                    version: state.ledger?.version ?? 0)))
    }

    /// Whether the record is as it is known to be.
    private func agrees(_ seen: Observation, _ state: SubmissionState) -> Bool {
        guard case .live(let entry, let editPosition) = state.entry, entry.backendId == seen.record.id,
            entry.status == status(of: seen.record, for: entry), !seen.tellsReporting
        else { return false }
        if let confirmed = state.ledger?.confirmed { return confirmed.wanted.matches(seen.record) }
        // An entry that was made of the record; what its person changed since is not the back end's.
        return editPosition > 0
            || seen.wanted.day == entry.entryDate && seen.wanted.text ?? "" == entry.text ?? ""
                && Hours(seconds: seen.record.durationSeconds) == Hours(seconds: entry.durationSeconds ?? 0)
    }

    // MARK: Hearing

    private func hear(
        _ answer: SubmissionAnswer, _ seen: Observation?, _ state: SubmissionState, _ attemptCount: Int
    ) -> SubmissionDecision {
        let retryWait = min(retryMin * (1 << min(attemptCount, 16)), retryMax)
        switch answer {
        case .record(let record), .successor(let record):
            guard let seen, EntryStatus(observed: record.status) != nil else { return lose(state) }
            return agrees(seen, state) ? adopt(seen, state) : take(seen, state)
        case .absent: return lose(state)
        case .ambiguous(let count):
            return SubmissionDecision(
                step: .dead(reason: "\(count) \(ParkedReason.severalRecords)"))
        case .refused(let messages):
            let reason = "the back end refuses to say what it has: " + messages.joined(separator: "; ")
            return SubmissionDecision(step: .park(reason: reason, after: retryWait, cause: .attempt))
        case .notProcessed(let reason, let retryAfter):
            let wait = max(retryAfter ?? .zero, retryWait)
            return SubmissionDecision(
                step: .park(reason: reason, after: wait, cause: .away(askingFor: retryAfter)))
        case .notMade:
            return SubmissionDecision(
                step: .park(reason: ParkCause.noRoom, after: retryMin, cause: .planned))
        case .unknown(let reason, _, _):
            return SubmissionDecision(step: .park(reason: reason, after: retryWait, cause: .backendAway))
        }
    }

    // MARK: Writing

    /// Remembers what the back end holds of an entry that has no ledger yet, or none that says it.
    private func adopt(_ seen: Observation, _ state: SubmissionState) -> SubmissionDecision {
        guard state.ledger?.confirmed == nil, case .live(let entry, _) = state.entry else {
            return SubmissionDecision(step: .finished)
        }
        return SubmissionDecision(ledger: settled(seen, entry.status, state), step: .finished)
    }

    /// The entry becomes what the back end has.
    private func take(_ seen: Observation, _ state: SubmissionState) -> SubmissionDecision {
        guard case .live(let entry, _) = state.entry else {
            guard let status = status(of: seen.record, for: nil) else { return lose(state) }
            var fields = seen.wanted.fields
            fields.status = status
            return SubmissionDecision(
                ledger: settled(seen, status, state), entry: .put(fields),
                log: [.init(status: status, message: seen.record.message)], step: .finished)
        }
        guard let status = status(of: seen.record, for: entry) else { return lose(state) }
        var patch = EntryPatch()
        if entry.backendId != seen.record.id { patch.backendID = seen.record.id }
        let areValuesKnown = state.ledger?.confirmed?.wanted.matches(seen.record) ?? false
        if !areValuesKnown || seen.tellsReporting { patch.restored = seen.wanted.fields }
        var log: [SubmissionDecision.LogLine] = []
        if entry.status != status {
            patch.status = status
            log = [.init(status: status, message: seen.record.message, code: areValuesKnown ? nil : .recordChanged)]
        } else if !areValuesKnown {
            log = [.init(status: status, message: "Changed in the back end", code: .recordChanged)]
        }
        return SubmissionDecision(
            ledger: settled(seen, status, state), entry: patch == EntryPatch() ? nil : .patch(patch), log: log,
            step: .finished)
    }

    /// The back end no longer has it. What a person wrote is kept, to be submitted again; what came from the back end
    /// alone goes with its record.
    private func lose(_ state: SubmissionState) -> SubmissionDecision {
        guard case .live(let entry, let editPosition) = state.entry, isKnown(state) else {
            return SubmissionDecision(step: .finished)
        }
        if entry.submitRequested != true, editPosition == 0 {
            return SubmissionDecision(entry: .tombstone, forgets: state.ledger != nil, step: .finished)
        }
        var ledger = state.ledger ?? Ledger()
        ledger.version += 1
        ledger.backendID = nil
        ledger.confirmed = nil
        return SubmissionDecision(
            ledger: ledger, entry: .patch(EntryPatch(status: .invalid, backendID: .some(nil))),
            log: [.recordGone], step: .finished)
    }

    private func settled(_ seen: Observation, _ status: EntryStatus, _ state: SubmissionState) -> Ledger {
        var ledger = state.ledger ?? Ledger()
        ledger.version += 1
        ledger.phase = .settled
        ledger.backendID = seen.record.id
        ledger.wanted = nil
        let known = ledger.confirmed.flatMap { $0.wanted.matches(seen.record) ? $0 : nil }
        ledger.confirmed = Confirmed(wanted: seen.wanted, status: status, sent: known?.sent)
        return ledger
    }

    /// A record that is not released is the person's draft while it was never more than that.
    private func status(of record: BackendEntry, for entry: TimeEntry?) -> EntryStatus? {
        guard record.status == .inProcess, let entry else { return EntryStatus(observed: record.status) }
        switch entry.status {
        case .draft, .suggestion: return .draft
        case .submitted, .invalid, .released, .rejected, .approved, .recorded: return .submitted
        }
    }
}

/// A record of the back end, with what it means in the person's realm.
struct Observation: Equatable, Sendable {
    var record: BackendEntry
    var wanted: Wanted
    /// Whether what the entry is about is told now, and could not be before.
    var tellsReporting = false
}

extension Observation {
    /// - Parameters:
    ///   - entry: The entry there is: what the back end does not keep, or did not change, stays as it is.
    ///   - confirmed: What the back end was known to hold.
    init(_ record: BackendEntry, over entry: TimeEntry?, confirmed: Wanted?, in objects: ReportingObjects) {
        var fields = entry ?? TimeEntry()
        fields.backendId = record.id
        fields.text = record.text
        fields.entryDate = record.day
        let knownSeconds = entry.flatMap { EntryRules.seconds(of: $0) }
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
            let meaning = ReportingData(objects).meaning(
                of: record.references, preferring: entry?.reportingTemplate)
            fields.reportingTemplate = meaning.template ?? entry?.reportingTemplate
            fields.reporting = meaning.selections
            for selection in EntryRules.selections(of: fields, in: objects) {
                guard references[selection.name] == nil, let node = selection.nodes.first else { continue }
                references[selection.name] = objects.nodes[node]?.referenceId
            }
        }
        self.record = record
        wanted = Wanted(
            day: record.day, durationSeconds: record.durationSeconds, text: record.text, references: references,
            fields: fields)
    }
}

extension ReportingData {
    /// What is stored, in an order that is always the same.
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
