import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

extension EventSubject {
    /// The realm of the entry, also for an observation of the entry's record.
    var entryRealm: RealmPath? { kind == .seenRecord ? realm.seenEmail.flatMap { try? .user($0) } : realm }
}

extension WorkItem {
    /// Whether the item is an observation of a record, not an event of the entry itself.
    var isObservation: Bool { subject.kind == .seenRecord }
}

extension WorkItem<EntryHandler.CallResult> {
    /// The attempt whose result the item has.
    var sent: SentAttempt? { if case .result(let answer) = origin { answer.sent } else { nil } }
    /// Whether the item is a retry of a deferred key.
    var isRetry: Bool { if case .retry = origin { true } else { false } }
    /// The result of the item's call.
    var result: SubmissionResult? { if case .result(let answer) = origin { answer.result } else { nil } }
    /// The origin of the item as the rules handle it.
    var ruleOrigin: SubmissionRule.Origin {
        switch origin {
        case .event, .retry: .change
        case .result(let answer): .result(answer.result, version: answer.version)
        }
    }
}

extension EntryHandler {
    /// Decides an observation with `ObservationRule`.
    mutating func observe(
        _ object: RealmObject?, _ state: SubmissionState, _ input: WorkItem<CallResult>, _ key: ObjectKey,
        _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> SubmissionDecision {
        var record: BackendEntry?
        if case .record(let found)? = input.result { record = found }
        if record == nil, let stored = try object?.decoded(as: SeenRecord.self, by: decoder) {
            guard let entry = BackendEntry(stored) else {
                throw StoredJSONError(
                    description: "SeenRecord \(key.id.text) has the unknown status '\(stored.status)'")
            }
            record = entry
        }
        var observed: Observation?
        if let record { observed = try self.observed(record, state, key, environment, &connection) }
        return observationRule.decide(state, observed: observed, input.ruleOrigin, attemptCount: input.attemptCount)
    }

    private mutating func observed(
        _ record: BackendEntry, _ state: SubmissionState, _ key: ObjectKey, _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws -> Observation {
        var entry: TimeEntry?
        var isUnresolved = false
        if case .live(let current, let editPosition) = state.entry {
            entry = current
            isUnresolved = editPosition == 0 && current.reporting.isEmpty && !record.references.isEmpty
        }
        // The references could not be resolved when the entry was created; they may be resolvable now.
        let confirmed = isUnresolved ? nil : state.ledger?.confirmed?.desired
        // A record with confirmed values needs no reporting data.
        if let confirmed, confirmed.matches(record) {
            return Observation(record, over: entry, confirmed: confirmed, in: ReportingObjects())
        }
        func make(isFresh: Bool) throws -> Observation {
            let objects = try reporting.objects(
                realm: key.realm, in: environment, isFresh: isFresh, directory: &directory, on: &connection)
            return Observation(record, over: entry, confirmed: confirmed, in: objects)
        }
        var observed = try make(isFresh: false)
        // The nodes that it refers to may be new.
        if observed.desired.fields.reporting.isEmpty, !record.references.isEmpty { observed = try make(isFresh: true) }
        observed.resolvesReporting = isUnresolved && !observed.desired.fields.reporting.isEmpty
        return observed
    }

    /// Loads the person's reporting data if a record that was read back has other references than were sent.
    mutating func loadObjects(
        for result: SubmissionResult?, into state: inout SubmissionState, _ key: ObjectKey,
        _ environment: EnvironmentID, _ connection: inout Connection
    ) throws {
        let record: BackendEntry
        switch result {
        case .record(let found), .successor(let found): record = found
        case .absent, .ambiguous, .refused, .notProcessed, .unknown, .notMade, nil: return
        }
        let records = [state.ledger?.desired, state.ledger?.confirmed?.desired].compactMap(\.self)
        if records.allSatisfy({ $0.hasReferences(of: record) }) { return }
        state.objects = try reporting.objects(
            realm: key.realm, in: environment, isFresh: false, directory: &directory, on: &connection)
    }
}

/// Records with two entries: if the back end truncates a record's marker, the poller reports it as a record without an
/// entry.
extension EntryHandler {
    /// Returns the decision, or one that protects the record of another entry: no second entry is created for it, and
    /// it is not deleted with this entry.
    func protectingSharedRecord(
        _ decision: SubmissionDecision, about state: SubmissionState, _ input: WorkItem<CallResult>, _ key: ObjectKey,
        _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> SubmissionDecision {
        if input.isObservation, case .put(let fields) = decision.entry, let record = fields.backendId {
            let others = try connection.run(EntryStore.others(with: record, than: key, in: environment))
            return others.count == 0 ? decision : SubmissionDecision(step: .finished)
        }
        guard case .call(let call) = decision.step, case .delete(let record) = call.action else { return decision }
        let others = try connection.run(EntryStore.others(with: record, than: key, in: environment))
        // If all entries of the record are being deleted, the last one deletes it.
        guard try others.decode(Bool.self).contains(false) else { return decision }
        var state = state
        state.isRecordShared = true
        return decide(state, input)
    }
}

extension EntryHandler {
    /// An entry without writes, and the number of its decision.
    typealias Unchanged = (entry: EntryLogRule.UnchangedEntry, key: ObjectKey, decision: Int)

    /// Appends a line to the logs of retried entries without writes whose newest line differs from the entry's status.
    func log(
        _ unchanged: [Unchanged], in environment: EnvironmentID, _ writes: inout EntryWrites,
        on connection: inout Connection
    ) throws {
        if unchanged.isEmpty { return }
        let newest = try EntryStore.newestLines(
            connection.run(EntryStore.loadNewestLines(of: unchanged.map(\.key), in: environment)))
        let now = Timestamp.now()
        for item in unchanged {
            if let line = EntryLogRule.line(of: item.entry, newest: newest[item.key], now: now) {
                writes.add(line, to: item.key, decision: item.decision)
            }
        }
    }
}
