import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import Testing

@testable import EntrySubmitter
@testable import RealmGateway

/// One entry, its device, its ledger, and a back end with the faults of real ones: it refuses, is unavailable, loses
/// responses after writing, and commits late. The people file changes. Workers crash, evaluate twice, and deliver
/// results late. Time is a number.
struct SubmissionWorld {
    struct Record: Equatable {
        var desired: DesiredRecord
        var isLive = true
        var visibleAt: Int
        /// The status set by an approver.
        var status = BackendStatus.released
    }

    struct Flight {
        let call: SubmissionCall
        /// The latest time at which it can be sent.
        let sendBefore: Int
        /// Whether the worker that waits for the result is still running.
        var isReceived = true
        /// Whether it reads a record for an observation.
        var isObservation = false
    }

    static let rule = SubmissionRule(
        lease: .seconds(70), settleMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60))
    /// A late commit happens within `settleMin`, as the setting requires.
    static let lateCommitMax = 25
    /// Maximum duration of a call after it was sent.
    static let callMax = 40

    var random: SplitMix64
    var now = 0
    var entry: TimeEntry?
    var isTombstone = false
    var position: Int64 = 0
    var editPosition: Int64 = 0
    var ledger: Ledger?
    var leaseUntil = 0
    var records: [String: Record] = [:]
    var flights: [Flight] = []
    var answers: [(SubmissionResult, version: Int64)] = []
    /// The record that the poller is reading, and its last write.
    var inRead: BackendEntry?
    var isReading = false
    var readPosition: Int64 = 0
    var seenRecord: BackendEntry?
    /// Whether the observation's event, or its deferred key, is due.
    var isObservationDue = false
    /// Whether only the submitter has changed the record since its last write.
    var isRecordOurs = false
    var observationAnswers: [(SubmissionResult, version: Int64)] = []
    var parkedUntil = 0
    var isDead = false
    /// Whether a decision was the last one although a request of the device was pending: the event of its own write is
    /// not decided.
    var hasLeftRequest = false
    var invalidMessages: [String] = []
    /// The status log.
    var lines: [SubmissionDecision.LogLine] = []
    var statusChanges: [EntryStatus] = []
    /// The newest edit of the device with a request to the back end, and the records that the back end refused.
    var lastEdit: TimeEntry?
    var refused: [DesiredRecord] = []
    var areDeletionsRefused = false
    /// Whether calls can be made; otherwise a decision to call is rolled back.
    var canCall = true
    /// Whether the back end alters texts.
    var alters = false
    /// Whether the people file has the person's assignment; without it, every call is refused before it is sent.
    var isAssigned = true

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        entry = Self.draft(duration: 3_600)
        edit { _ in }
    }

    static func draft(duration: Int) -> TimeEntry {
        TimeEntry(
            status: .draft, text: "work", reportingTemplate: nil, reporting: [], timeType: .duration,
            entryDate: Day(daysSinceEpoch: 16_000), durationSeconds: duration)
    }

    // MARK: The device

    mutating func edit(_ change: (inout TimeEntry) -> Void) {
        guard var changed = entry, !isTombstone, changed.deleteRequested != true else { return }
        change(&changed)
        entry = changed
        position += 1
        editPosition = position
        lastEdit = changed
    }

    /// Changes fields as a device's put or patch does, by `MutationRules`; `fields` is JSON.
    mutating func write(_ operation: Mutation.Operation, _ fields: String) {
        guard let entry, !isTombstone, let stored = try? JSONEncoder().encode(entry) else { return }
        let change = try? MutationRules.decide(
            Mutation(operation: operation, kind: .timeEntry, id: UUID(), fields: Array(fields.utf8)),
            current: .live(fields: Array(stored)))
        guard case .merge(let merged)? = change, let before = try? JSONObject(Array(stored)),
            let patch = try? JSONObject(merged),
            let after = try? JSONDecoder().decode(TimeEntry.self, from: Data(before.merging(patch))), after != entry
        else { return }
        edit { $0 = after }
    }

    /// Deletes as by `MutationRules`: immediately while the back end cannot have the entry, otherwise as a request.
    mutating func delete() {
        guard let current = entry, !isTombstone else { return }
        switch current.status {
        case .suggestion, .draft: tombstone()
        case .invalid where current.backendId == nil: tombstone()
        case .submitted, .invalid, .released, .rejected, .approved, .recorded: edit { $0.deleteRequested = true }
        }
    }

    private mutating func tombstone() {
        entry = nil
        isTombstone = true
        position += 1
        editPosition = position
    }

    // MARK: The worker

    /// Loads, decides and commits; `interleaved` changes something between load and commit.
    mutating func decide(_ origin: SubmissionRule.Origin, interleaved: ((inout Self) -> Void)? = nil) {
        let loaded = (position, ledger?.version ?? 0)
        let decision = Self.decision(about: state(), origin)
        interleaved?(&self)
        if !canCall, case .call = decision.step { return }
        guard loaded == (position, ledger?.version ?? 0) else { return decide(origin) }  // conflict: reprocessed
        commit(decision)
    }

    /// The desired record is determined only if the rule requests it: without it, the decision is equal, or `validate`.
    private static func decision(about state: SubmissionState, _ origin: SubmissionRule.Origin) -> SubmissionDecision {
        let decision = rule.decide(state, origin)
        var unchecked = state
        (unchecked.isValidated, unchecked.desired, unchecked.problems) = (false, nil, [])
        let first = rule.decide(unchecked, origin)
        #expect(first == decision || first == SubmissionDecision(step: .validate))
        return decision
    }

    func state() -> SubmissionState {
        var ledger = ledger
        ledger?.leaseRemaining = .seconds(leaseUntil - now)
        guard let entry else {
            var state = SubmissionState(entry: isTombstone ? .tombstone : .missing, ledger: ledger)
            state.canCall = canCall
            return state
        }
        var state = SubmissionState(entry: .live(entry, editPosition: editPosition), ledger: ledger)
        state.canCall = canCall
        state.problems = entry.seconds.map { $0 <= 0 ? ["Duration must be more than 0"] : [] } ?? []
        if state.problems.isEmpty, let day = entry.entryDate, let seconds = entry.durationSeconds {
            state.desired = DesiredRecord(
                day: day, durationSeconds: seconds, text: entry.text, references: [:], fields: entry)
        }
        return state
    }

    mutating func commit(_ decision: SubmissionDecision, isObservation: Bool = false) {
        if let changed = decision.ledger {
            ledger = changed
            leaseUntil = now + Int(decision.lease.components.seconds)
        }
        if decision.removesLedger { ledger = nil }
        switch decision.entry {
        case .tombstone?: if entry != nil { tombstone() }
        case .patch(let patch)?: apply(patch)
        case .put(let fields)?:
            entry = fields
            isTombstone = false
            position += 1
        case nil: break
        }
        for line in decision.log where line.status == .invalid { invalidMessages.append(line.message ?? "") }
        lines += decision.log
        switch decision.step {
        case .finished:
            let isWritten = decision.entry != nil || decision.ledger != nil || decision.removesLedger
            if isWritten, !isObservation, EntryRequest(state().entry, handled: ledger ?? Ledger()) != .none {
                hasLeftRequest = true
            }
        case .reprocess: decide(.change)
        case .validate: Issue.record("the entry is not decided")
        case .call(let call) where isObservation:
            flights.append(Flight(call: call, sendBefore: .max, isObservation: true))
        case .call(let call): flights.append(Flight(call: call, sendBefore: leaseUntil - Self.callMax))
        case .deferred(_, let after, _): parkedUntil = now + Int(after.components.seconds)
        case .deadLettered: isDead = true
        }
    }

    private mutating func apply(_ patch: EntryPatch) {
        guard let before = entry else { return }
        entry = patch.applied(to: before)
        if let status = patch.status, status != before.status { statusChanges.append(status) }
        position += 1
    }

    // MARK: The back end

    enum Fault: CaseIterable { case none, refuse, away, lostAfter, lostBefore, late, unmade, unread, unreadLate }

    /// A call reaches the back end, or its deadline has passed.
    mutating func fly(_ index: Int, _ fault: Fault) {
        let flight = flights.remove(at: index)
        guard now <= flight.sendBefore else { return }  // never sent; reprocessed by the next evaluation
        let answer = perform(flight.call.action, fault)
        guard flight.isReceived else { return }
        if flight.isObservation {
            observationAnswers.append((answer, version: flight.call.version))
        } else {
            answers.append((answer, version: flight.call.version))
        }
    }

    private mutating func perform(_ action: SubmissionCall.Action, _ fault: Fault) -> SubmissionResult {
        if !isAssigned {
            refuse(action)
            return .refused(["no assignment"])
        }
        if fault == .unmade { return .notMade }
        if fault == .away { return .notProcessed(reason: "away", retryAfter: nil) }
        if case .find(let id, _) = action { return find(id) }
        switch fault {
        case .refuse:
            refuse(action)
            return .refused(["no"])
        case .lostBefore: return .unknown(reason: "lost", recordID: nil)
        case .none, .away, .unmade, .lostAfter, .late, .unread, .unreadLate: break
        }
        let isLate = fault == .late || fault == .unreadLate
        let visibleAt = isLate ? now + Int(random.next() % UInt64(Self.lateCommitMax)) : now
        let id: String
        switch action {
        case .create(let desired):
            id = "r\(records.count + 1)"
            records[id] = Record(desired: stored(desired), visibleAt: visibleAt)
        case .update(let existing, let desired):
            id = existing
            if records[id]?.isLive == true {
                let record = stored(desired)
                records[id]?.desired = record
                records[id]?.status = .released
            }
        case .delete(let existing):
            id = existing
            records[id]?.isLive = false
        case .find: return .absent
        }
        isRecordOurs = true
        if fault == .lostAfter || fault == .late { return .unknown(reason: "lost", recordID: nil) }
        if fault == .unread || fault == .unreadLate { return .unknown(reason: "unread", recordID: id) }
        return read(id).map(SubmissionResult.record) ?? .absent
    }

    /// Returns the record as the back end stores it.
    private func stored(_ desired: DesiredRecord) -> DesiredRecord {
        var record = desired
        record.text = stored(desired.text)
        return record
    }

    func stored(_ text: String?) -> String? { alters ? text?.replacing("e", with: "?") : text }

    private mutating func refuse(_ action: SubmissionCall.Action) {
        switch action {
        case .create(let desired), .update(_, let desired): refused.append(desired)
        case .delete: areDeletionsRefused = true
        case .find: break
        }
    }

    func read(_ id: String) -> BackendEntry? {
        guard let record = records[id], record.visibleAt <= now else { return nil }
        return BackendEntry(
            id: id, marker: "m", day: record.desired.day, durationSeconds: record.desired.durationSeconds,
            text: record.desired.text, status: record.isLive ? record.status : .cancelled, references: [:])
    }

    private func find(_ id: String?) -> SubmissionResult {
        if let id, let record = read(id), record.status != .cancelled { return .record(record) }
        let live = records.keys.compactMap(read).filter { $0.status != .cancelled }
        guard let first = live.first else { return .absent }
        return live.count == 1 ? .record(first) : .ambiguous(live.map(\.id).sorted())
    }

    var liveRecords: [Record] { records.values.filter(\.isLive) }
}
