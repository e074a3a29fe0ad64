import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import Testing

@testable import EntrySubmitter
@testable import RealmGateway

/// One entry, its device, its ledger, and a back end that may do anything a real one does: refuse, be away, lose its
/// answer after writing, commit late. The people file changes. Workers crash, look twice, and answer late. Time is a
/// number.
struct SubmissionWorld {
    struct Record: Equatable {
        var wanted: Wanted
        var isLive = true
        var visibleAt: Int
        /// What an approver has made of it.
        var status = BackendStatus.released
    }

    struct Flight {
        let call: SubmissionCall
        /// The latest moment it can still be sent.
        let sendBefore: Int
        /// Whether the worker that waits for the answer is still there.
        var isHeard = true
        /// It reads a record again that the poller saw.
        var isObservation = false
    }

    static let rule = SubmissionRule(
        lease: .seconds(70), settleMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60))
    /// A late commit comes within `settleMin`; that is what the setting promises.
    static let lateCommitMax = 25
    /// A call ends this long after it was sent at the latest.
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
    var answers: [(SubmissionAnswer, version: Int64)] = []
    /// What the poller is reading, and what it wrote last.
    var inRead: BackendEntry?
    var isReading = false
    var readPosition: Int64 = 0
    var seenRecord: BackendEntry?
    /// The observation's event, or its parked key, is still to be handled.
    var isObservationDue = false
    /// Nobody but us has changed the record since we wrote it last.
    var isRecordOurs = false
    var observationAnswers: [(SubmissionAnswer, version: Int64)] = []
    var parkedUntil = 0
    var isDead = false
    /// A decision was the last one though a request of the device was left: its own write's event is not decided.
    var hasLeftRequest = false
    var invalidMessages: [String] = []
    /// The status log.
    var lines: [SubmissionDecision.LogLine] = []
    var statusChanges: [EntryStatus] = []
    /// The newest edit of the device that asks for something of the back end, and what the back end refused to write.
    var lastEdit: TimeEntry?
    var refused: [Wanted] = []
    var areDeletionsRefused = false
    /// Whether calls can be made; a decision to make one is taken back else.
    var canCall = true
    /// Whether the back end keeps another text than it is sent.
    var alters = false
    /// Whether the people file tells the person's assignment; without it every call is refused before it is sent.
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
        let decision = MutationRules.decide(
            Mutation(operation: operation, kind: .timeEntry, id: UUID(), fields: Array(fields.utf8)),
            current: .live(fields: Array(stored)))
        guard case .accept(.merge(let merged)) = decision, let before = try? JSONObject(Array(stored)),
            let patch = try? JSONObject(merged),
            let after = try? JSONDecoder().decode(TimeEntry.self, from: Data(before.merging(patch))), after != entry
        else { return }
        edit { $0 = after }
    }

    /// As `MutationRules` has it: at once while no back end can know the entry, else a request.
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
        guard loaded == (position, ledger?.version ?? 0) else { return decide(origin) }  // missed: decided again
        commit(decision)
    }

    /// What is to be submitted is made only where the rule asks for it: without it, it says the same, or nothing.
    private static func decision(about state: SubmissionState, _ origin: SubmissionRule.Origin) -> SubmissionDecision {
        let decision = rule.decide(state, origin)
        var unchecked = state
        (unchecked.isChecked, unchecked.wanted, unchecked.problems) = (false, nil, [])
        let first = rule.decide(unchecked, origin)
        #expect(first == decision || first == SubmissionDecision(step: .check))
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
        state.problems = EntryRules.seconds(of: entry).map { $0 <= 0 ? ["Duration must be more than 0"] : [] } ?? []
        if state.problems.isEmpty, let day = entry.entryDate, let seconds = entry.durationSeconds {
            state.wanted = Wanted(day: day, durationSeconds: seconds, text: entry.text, references: [:], fields: entry)
        }
        return state
    }

    mutating func commit(_ decision: SubmissionDecision, isObservation: Bool = false) {
        if let changed = decision.ledger {
            ledger = changed
            leaseUntil = now + Int(decision.lease.components.seconds)
        }
        if decision.forgets { ledger = nil }
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
            let isWritten = decision.entry != nil || decision.ledger != nil || decision.forgets
            if isWritten, !isObservation, EntryRequest(state().entry, handled: ledger ?? Ledger()) != .none {
                hasLeftRequest = true
            }
        case .again: decide(.look)
        case .check: Issue.record("it is not decided")
        case .call(let call) where isObservation:
            flights.append(Flight(call: call, sendBefore: .max, isObservation: true))
        case .call(let call): flights.append(Flight(call: call, sendBefore: leaseUntil - Self.callMax))
        case .park(_, let after, _): parkedUntil = now + Int(after.components.seconds)
        case .dead: isDead = true
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

    /// A call reaches the back end, or its time to be sent has passed.
    mutating func fly(_ index: Int, _ fault: Fault) {
        let flight = flights.remove(at: index)
        guard now <= flight.sendBefore else { return }  // never sent; decided again by whoever looks
        let answer = perform(flight.call.action, fault)
        guard flight.isHeard else { return }
        if flight.isObservation {
            observationAnswers.append((answer, version: flight.call.version))
        } else {
            answers.append((answer, version: flight.call.version))
        }
    }

    private mutating func perform(_ action: SubmissionCall.Action, _ fault: Fault) -> SubmissionAnswer {
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
        case .create(let wanted):
            id = "r\(records.count + 1)"
            records[id] = Record(wanted: kept(wanted), visibleAt: visibleAt)
        case .update(let known, let wanted):
            id = known
            if records[id]?.isLive == true {
                let record = kept(wanted)
                records[id]?.wanted = record
                records[id]?.status = .released
            }
        case .delete(let known):
            id = known
            records[id]?.isLive = false
        case .find: return .absent
        }
        isRecordOurs = true
        if fault == .lostAfter || fault == .late { return .unknown(reason: "lost", recordID: nil) }
        if fault == .unread || fault == .unreadLate { return .unknown(reason: "unread", recordID: id) }
        return read(id).map(SubmissionAnswer.record) ?? .absent
    }

    /// What the back end makes of what it is sent.
    private func kept(_ wanted: Wanted) -> Wanted {
        var record = wanted
        record.text = kept(wanted.text)
        return record
    }

    func kept(_ text: String?) -> String? { alters ? text?.replacing("e", with: "?") : text }

    private mutating func refuse(_ action: SubmissionCall.Action) {
        switch action {
        case .create(let wanted), .update(_, let wanted): refused.append(wanted)
        case .delete: areDeletionsRefused = true
        case .find: break
        }
    }

    func read(_ id: String) -> BackendEntry? {
        guard let record = records[id], record.visibleAt <= now else { return nil }
        return BackendEntry(
            id: id, marker: "m", day: record.wanted.day, durationSeconds: record.wanted.durationSeconds,
            text: record.wanted.text, status: record.isLive ? record.status : .cancelled, references: [:])
    }

    private func find(_ id: String?) -> SubmissionAnswer {
        if let id, let record = read(id), record.status != .cancelled { return .record(record) }
        let live = records.keys.compactMap(read).filter { $0.status != .cancelled }
        guard let first = live.first else { return .absent }
        return live.count == 1 ? .record(first) : .ambiguous(count: live.count)
    }

    var liveRecords: [Record] { records.values.filter(\.isLive) }
}
