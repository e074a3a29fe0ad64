import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

extension EventSubject {
    /// The realm of the entry that this is, or is a record of.
    var entryRealm: RealmPath? { kind == .seenRecord ? realm.seenEmail.flatMap { try? .user($0) } : realm }
}

extension WorkItem {
    /// Whether it is about what the back end was seen to hold, and not about the entry itself.
    var isObservation: Bool { subject.kind == .seenRecord }
}

extension WorkItem<EntryHandler.Answer> {
    /// The attempt whose answer it is.
    var sent: SentAttempt? { if case .answer(let answer) = origin { answer.sent } else { nil } }
    /// Whether it was parked, or is looked at once more.
    var isRetry: Bool { if case .retry = origin { true } else { false } }
    /// What came of the call that it waited for.
    var heard: SubmissionAnswer? { if case .answer(let answer) = origin { answer.found } else { nil } }
}

extension EntryHandler {
    /// Lets `ObservationRule` decide.
    mutating func observe(
        _ object: RealmObject?, _ state: SubmissionState, _ input: WorkItem<Answer>, _ key: ObjectKey,
        _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> SubmissionDecision {
        let origin: ObservationRule.Origin
        var record: BackendEntry?
        switch input.origin {
        case .answer(let answer):
            origin = .answer(answer.found, version: answer.version)
            if case .record(let found) = answer.found { record = found }
        case .event, .retry: origin = .look
        }
        if record == nil, let stored = try object?.decoded(as: SeenRecord.self, by: decoder) {
            guard let known = BackendEntry(stored) else {
                throw Undecodable(
                    description: "SeenRecord \(key.id.text) has the status '\(stored.status)', which nobody knows")
            }
            record = known
        }
        var seen: Observation?
        if let record { seen = try self.seen(record, state, key, environment, &connection) }
        return observationRule.decide(state, seen: seen, origin, attemptCount: input.attemptCount)
    }

    private mutating func seen(
        _ record: BackendEntry, _ state: SubmissionState, _ key: ObjectKey, _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws -> Observation {
        var entry: TimeEntry?
        var isUnresolved = false
        if case .live(let there, let editPosition) = state.entry {
            entry = there
            isUnresolved = editPosition == 0 && there.reporting.isEmpty && !record.references.isEmpty
        }
        // What an entry is about could not be told when it was made; now it may.
        let confirmed = isUnresolved ? nil : state.ledger?.confirmed?.wanted
        // What is known already needs no look at the choices.
        if let confirmed, confirmed.matches(record) {
            return Observation(record, over: entry, confirmed: confirmed, in: ReportingObjects())
        }
        func make(isFresh: Bool) throws -> Observation {
            let objects = try reporting.objects(
                realm: key.realm, in: environment, isFresh: isFresh, directory: &directory, on: &connection)
            return Observation(record, over: entry, confirmed: confirmed, in: objects)
        }
        var seen = try make(isFresh: false)
        // What it refers to may be new.
        if seen.wanted.fields.reporting.isEmpty, !record.references.isEmpty { seen = try make(isFresh: true) }
        seen.tellsReporting = isUnresolved && !seen.wanted.fields.reporting.isEmpty
        return seen
    }

    /// Adds what the person can report on, where a record that was read back names something else than was sent.
    mutating func note(
        _ heard: SubmissionAnswer?, in state: inout SubmissionState, _ key: ObjectKey, _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws {
        let record: BackendEntry
        switch heard {
        case .record(let found), .successor(let found): record = found
        case .absent, .ambiguous, .refused, .notProcessed, .unknown, .notMade, nil: return
        }
        let known = [state.ledger?.wanted, state.ledger?.confirmed?.wanted].compactMap(\.self)
        if known.allSatisfy({ $0.hasReferences(of: record) }) { return }
        state.objects = try reporting.objects(
            realm: key.realm, in: environment, isFresh: false, directory: &directory, on: &connection)
    }
}
