import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import Testing

@testable import EntrySubmitter

/// What an observation of a record makes of its entry.
@Suite struct ObservationRuleTests {
    private static let rule = ObservationRule(
        waitMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60))
    private static let day = Day(daysSinceEpoch: 16_000)

    // MARK: Statuses

    /// An approver's moves, forth and back, each with a line of the log.
    @Test(arguments: [
        (EntryStatus.released, BackendStatus.approved, EntryStatus.approved), (.approved, .released, .released),
        (.released, .rejected, .rejected), (.rejected, .released, .released), (.approved, .recorded, .recorded),
        (.invalid, .released, .released), (.released, .inProcess, .submitted), (.submitted, .released, .released),
    ])
    func aStatusThatMovedInTheBackEndIsReadAgainAndTaken(
        from: EntryStatus, record: BackendStatus, to: EntryStatus
    ) throws {
        let state = Self.known(from)
        let seen = Self.seen(record, message: "why")
        let look = Self.rule.decide(state, seen: seen, .look)
        guard case .call(let call) = look.step, case .find("1", [Self.day]) = call.action else {
            Issue.record("\(look.step)")
            return
        }
        #expect(look.ledger == nil && look.entry == nil && look.log.isEmpty)
        let decision = Self.rule.decide(state, seen: seen, .answer(.record(seen.record), version: call.version))
        #expect(decision.step == .finished)
        #expect(decision.entry == .patch(EntryPatch(status: to)))
        #expect(decision.log == [.init(status: to, message: "why")])
        #expect(decision.ledger?.confirmed?.status == to && decision.ledger?.version == 8)
    }

    @Test(arguments: EntryStatus.allCases) func whatIsKnownChangesNothing(status: EntryStatus) {
        guard let record = Self.record(of: status) else { return }
        let decision = Self.rule.decide(Self.known(status), seen: Self.seen(record), .look)
        #expect(decision.step == .finished && decision.ledger == nil && decision.entry == nil)
    }

    @Test func nothingLeavesTheBooks() {
        let decision = Self.rule.decide(Self.known(.recorded), seen: Self.seen(.rejected), .look)
        #expect(decision.step == .finished && decision.entry == nil)
    }

    // MARK: Order

    @Test(arguments: [Ledger.Phase.open, .finding, .unknown]) func anObservationWaitsForAnOpenAttempt(
        phase: Ledger.Phase
    ) {
        var state = Self.known(.released)
        state.ledger?.phase = phase
        for origin in [
            ObservationRule.Origin.look, .answer(.record(Self.seen(.approved).record), version: 7),
            .answer(.absent, version: 7),
        ] {
            let decision = Self.rule.decide(state, seen: Self.seen(.approved), origin)
            guard case .park(_, .seconds(30), .planned) = decision.step, decision.entry == nil else {
                Issue.record("\(decision)")
                return
            }
        }
    }

    @Test func anObservationWaitsForTheDevicesRequest() {
        let requests: [(inout TimeEntry) -> Void] = [{ $0.deleteRequested = true }, { $0.submitRequested = true }]
        for request in requests {
            var state = Self.known(.released, editPosition: 9)
            guard case .live(var entry, let position) = state.entry else { return }
            request(&entry)
            state.entry = .live(entry, editPosition: position)
            let decision = Self.rule.decide(state, seen: nil, .look)
            guard case .park(_, _, .planned) = decision.step else {
                Issue.record("\(decision.step)")
                return
            }
        }
    }

    /// Something was written to the back end after the record was read: it is read again.
    @Test func anAnswerFromBeforeAnotherWriteSaysNothing() {
        let seen = Self.seen(.approved)
        let decision = Self.rule.decide(Self.known(.released), seen: seen, .answer(.record(seen.record), version: 6))
        guard case .call(let call) = decision.step else {
            Issue.record("\(decision.step)")
            return
        }
        #expect(call.version == 7 && decision.entry == nil)
    }

    // MARK: Values, new and gone

    @Test func valuesChangedInTheBackEndReplaceTheEntrysWhereTheyDiffer() throws {
        var seen = Self.seen(.released)
        seen.record.durationSeconds = 7_200
        let state = Self.known(.released)
        guard case .live(let entry, _) = state.entry else { return }
        seen = Observation(seen.record, over: entry, confirmed: state.ledger?.confirmed?.wanted, in: ReportingObjects())
        let decision = Self.rule.decide(state, seen: seen, .answer(.record(seen.record), version: 7))
        guard case .patch(let patch)? = decision.entry, let restored = patch.restored else {
            Issue.record("\(decision)")
            return
        }
        #expect(patch.status == nil)
        #expect(restored.durationSeconds == 7_200 && restored.text == "work" && restored.reporting == entry.reporting)
        #expect(decision.log == [.init(status: .released, message: "Changed in the back end", code: .recordChanged)])
    }

    @Test func aRecordMadeElsewhereBecomesAnEntry() throws {
        let decision = Self.rule.decide(SubmissionState(entry: .missing), seen: Self.seen(.approved), .look)
        guard case .put(let entry)? = decision.entry else {
            Issue.record("\(decision)")
            return
        }
        #expect(entry.backendId == "1" && entry.status == .approved && entry.durationSeconds == 3_600)
        #expect(decision.log.map(\.status) == [.approved] && decision.ledger?.backendID == "1")
    }

    /// It may have been deleted a moment ago: only a record that is there now brings the entry back.
    @Test func aDeletedEntryComesBackOnlyWhenItsRecordIsThere() {
        let seen = Self.seen(.released)
        let state = SubmissionState(entry: .tombstone)
        guard case .call = Self.rule.decide(state, seen: seen, .look).step else {
            Issue.record("it was not read again")
            return
        }
        #expect(Self.rule.decide(state, seen: seen, .answer(.absent, version: 0)).entry == nil)
        guard case .put? = Self.rule.decide(state, seen: seen, .answer(.record(seen.record), version: 0)).entry else {
            Issue.record("it did not come back")
            return
        }
    }

    @Test func whatAPersonWroteIsKeptWhenItsRecordIsGone() {
        let decision = Self.rule.decide(Self.known(.approved, editPosition: 5), seen: nil, .answer(.absent, version: 7))
        #expect(decision.entry == .patch(EntryPatch(status: .invalid, backendID: .some(nil))))
        #expect(decision.log.map(\.status) == [.invalid] && decision.ledger?.backendID == nil)
    }

    @Test func whatCameFromTheBackEndGoesWithItsRecord() {
        let decision = Self.rule.decide(Self.known(.approved), seen: nil, .answer(.absent, version: 7))
        #expect(decision.entry == .tombstone && decision.forgets)
    }

    /// An entry that was made of a record before there was a ledger.
    @Test func anEntryWithoutALedgerIsAdopted() {
        var state = Self.known(.released)
        state.ledger = nil
        let decision = Self.rule.decide(state, seen: Self.seen(.released), .look)
        #expect(decision.step == .finished && decision.entry == nil && decision.log.isEmpty)
        #expect(decision.ledger?.backendID == "1" && decision.ledger?.confirmed?.status == .released)
    }

    @Test func anothersEntryIsLeftAlone() {
        var state = Self.known(.released)
        state.isAnothers = true
        #expect(Self.rule.decide(state, seen: Self.seen(.rejected), .look).step == .finished)
    }

    @Test func severalRecordsWithOneMarkerWaitForAPerson() {
        let decision = Self.rule.decide(Self.known(.released), seen: nil, .answer(.ambiguous(count: 2), version: 7))
        guard case .dead = decision.step else {
            Issue.record("\(decision.step)")
            return
        }
    }

    // MARK: Values

    private static func seen(_ status: BackendStatus, message: String? = nil) -> Observation {
        let record = BackendEntry(
            id: "1", marker: nil, day: day, durationSeconds: 3_600, text: "work", status: status,
            references: ["Project": "P1"], message: message)
        return Observation(record, over: nil, confirmed: nil, in: ReportingObjects())
    }

    private static func known(_ status: EntryStatus, editPosition: Int64 = 0) -> SubmissionState {
        let wanted = seen(.released).wanted
        var entry = wanted.fields
        entry.status = status
        var ledger = Ledger()
        ledger.version = 7
        ledger.editPosition = editPosition > 0 && editPosition < 9 ? editPosition : 0
        ledger.backendID = "1"
        ledger.confirmed = Confirmed(wanted: wanted, status: status)
        return SubmissionState(entry: .live(entry, editPosition: editPosition), ledger: ledger)
    }

    private static func record(of status: EntryStatus) -> BackendStatus? {
        switch status {
        case .suggestion, .submitted, .invalid: nil
        case .draft: .inProcess
        case .released: .released
        case .rejected: .rejected
        case .approved: .approved
        case .recorded: .recorded
        }
    }
}
