import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

/// Effects of an observation on its entry.
@Suite(.ownThreads) struct ObservationRuleTests {
    private static let rule = ObservationRule(
        waitMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60))
    private static let day = Day(daysSinceEpoch: 16_000)

    // MARK: Statuses

    /// Status changes by an approver in both directions, each with a line of the log.
    @Test(arguments: [
        (EntryStatus.released, BackendStatus.approved, EntryStatus.approved), (.approved, .released, .released),
        (.released, .rejected, .rejected), (.rejected, .released, .released), (.approved, .recorded, .recorded),
        (.invalid, .released, .released), (.released, .inProcess, .submitted), (.submitted, .released, .released),
    ])
    func changedStatusIsReadAgainAndAdopted(
        from: EntryStatus, record: BackendStatus, to: EntryStatus
    ) throws {
        let state = Self.known(from)
        let seen = Self.seen(record, message: "why")
        let lookupDecision = Self.rule.decide(state, observed: seen, .change)
        guard case .call(let call) = lookupDecision.step, case .find("1", [Self.day]) = call.action else {
            Issue.record("\(lookupDecision.step)")
            return
        }
        #expect(lookupDecision.ledger == nil && lookupDecision.entry == nil && lookupDecision.log.isEmpty)
        let decision = Self.rule.decide(state, observed: seen, .result(.record(seen.record), version: call.version))
        #expect(decision.step == .finished)
        #expect(decision.entry == .patch(EntryPatch(status: to)))
        #expect(decision.log == [.init(status: to, message: "why")])
        #expect(decision.ledger?.confirmed?.status == to && decision.ledger?.version == 8)
    }

    @Test(arguments: EntryStatus.allCases) func confirmedRecordChangesNothing(status: EntryStatus) {
        guard let record = Self.record(of: status) else { return }
        let decision = Self.rule.decide(Self.known(status), observed: Self.seen(record), .change)
        #expect(decision.step == .finished && decision.ledger == nil && decision.entry == nil)
    }

    @Test func recordedEntryIgnoresObservations() {
        let decision = Self.rule.decide(Self.known(.recorded), observed: Self.seen(.rejected), .change)
        #expect(decision.step == .finished && decision.entry == nil)
    }

    // MARK: Order

    @Test(arguments: [Ledger.Phase.open, .finding, .unknown]) func observationWaitsForOpenAttempt(
        phase: Ledger.Phase
    ) {
        var state = Self.known(.released)
        state.ledger?.phase = phase
        for origin in [
            ObservationRule.Origin.change, .result(.record(Self.seen(.approved).record), version: 7),
            .result(.absent, version: 7),
        ] {
            let decision = Self.rule.decide(state, observed: Self.seen(.approved), origin)
            guard case .deferred(_, .seconds(30), .planned) = decision.step, decision.entry == nil else {
                Issue.record("\(decision)")
                return
            }
        }
    }

    @Test func observationWaitsForDeviceRequest() {
        let requests: [(inout TimeEntry) -> Void] = [{ $0.deleteRequested = true }, { $0.submitRequested = true }]
        for request in requests {
            var state = Self.known(.released, editPosition: 9)
            guard case .live(var entry, let position) = state.entry else { return }
            request(&entry)
            state.entry = .live(entry, editPosition: position)
            let decision = Self.rule.decide(state, observed: nil, .change)
            guard case .deferred(_, _, .planned) = decision.step else {
                Issue.record("\(decision.step)")
                return
            }
        }
    }

    /// Another write was made after the record was read: it is read again.
    @Test func resultFromBeforeAnotherWriteIsIgnored() {
        let seen = Self.seen(.approved)
        let decision = Self.rule.decide(
            Self.known(.released), observed: seen, .result(.record(seen.record), version: 6))
        guard case .call(let call) = decision.step else {
            Issue.record("\(decision.step)")
            return
        }
        #expect(call.version == 7 && decision.entry == nil)
    }

    // MARK: Changed, new and deleted records

    @Test func changedValuesReplaceEntryValues() throws {
        var seen = Self.seen(.released)
        seen.record.durationSeconds = 7_200
        let state = Self.known(.released)
        guard case .live(let entry, _) = state.entry else { return }
        seen = Observation(
            seen.record, over: entry, confirmed: state.ledger?.confirmed?.desired, in: ReportingObjects())
        let decision = Self.rule.decide(state, observed: seen, .result(.record(seen.record), version: 7))
        guard case .patch(let patch)? = decision.entry, let restored = patch.restored else {
            Issue.record("\(decision)")
            return
        }
        #expect(patch.status == nil)
        #expect(restored.durationSeconds == 7_200 && restored.text == "work" && restored.reporting == entry.reporting)
        #expect(decision.log == [.init(status: .released, message: "Changed in the back end", code: .recordChanged)])
    }

    @Test func recordCreatedElsewhereBecomesEntry() throws {
        let decision = Self.rule.decide(SubmissionState(entry: .missing), observed: Self.seen(.approved), .change)
        guard case .put(let entry)? = decision.entry else {
            Issue.record("\(decision)")
            return
        }
        #expect(entry.backendId == "1" && entry.status == .approved && entry.durationSeconds == 3_600)
        #expect(decision.log.map(\.status) == [.approved] && decision.ledger?.backendID == "1")
    }

    /// The record may have been deleted meanwhile: only an existing record restores the entry.
    @Test func deletedEntryIsRestoredOnlyIfRecordExists() {
        let seen = Self.seen(.released)
        let state = SubmissionState(entry: .tombstone)
        guard case .call = Self.rule.decide(state, observed: seen, .change).step else {
            Issue.record("it was not read again")
            return
        }
        #expect(Self.rule.decide(state, observed: seen, .result(.absent, version: 0)).entry == nil)
        guard case .put? = Self.rule.decide(state, observed: seen, .result(.record(seen.record), version: 0)).entry
        else {
            Issue.record("the entry is not restored")
            return
        }
    }

    @Test func editedEntryIsKeptWhenRecordIsDeleted() {
        let decision = Self.rule.decide(
            Self.known(.approved, editPosition: 5), observed: nil, .result(.absent, version: 7))
        #expect(decision.entry == .patch(EntryPatch(status: .invalid, backendID: .some(nil))))
        #expect(decision.log.map(\.status) == [.invalid] && decision.ledger?.backendID == nil)
    }

    @Test func uneditedBackendEntryIsDeletedWithRecord() {
        let decision = Self.rule.decide(Self.known(.approved), observed: nil, .result(.absent, version: 7))
        #expect(decision.entry == .tombstone && decision.removesLedger)
    }

    /// An entry that was created from a record before there was a ledger.
    @Test func entryWithoutLedgerIsAdopted() {
        var state = Self.known(.released)
        state.ledger = nil
        let decision = Self.rule.decide(state, observed: Self.seen(.released), .change)
        #expect(decision.step == .finished && decision.entry == nil && decision.log.isEmpty)
        #expect(decision.ledger?.backendID == "1" && decision.ledger?.confirmed?.status == .released)
    }

    @Test func entryOfAnotherRealmIsUnchanged() {
        var state = Self.known(.released)
        state.isForeignID = true
        #expect(Self.rule.decide(state, observed: Self.seen(.rejected), .change).step == .finished)
    }

    @Test func severalRecordsWithOneMarkerAreDeadLettered() {
        let ids = (1...12).map { "80\($0)" }
        let decision = Self.rule.decide(Self.known(.released), observed: nil, .result(.ambiguous(ids), version: 7))
        guard case .deadLettered(let reason) = decision.step else {
            Issue.record("\(decision.step)")
            return
        }
        // The reason names the first ten records.
        #expect(reason.hasPrefix("12 records of the back end have this entry's marker"))
        #expect(reason.hasSuffix(": \(ids.prefix(10).joined(separator: ", ")), …"), "\(reason)")
    }

    // MARK: Values

    private static func seen(_ status: BackendStatus, message: String? = nil) -> Observation {
        let record = BackendEntry(
            id: "1", marker: nil, day: day, durationSeconds: 3_600, text: "work", status: status,
            references: ["Project": "P1"], message: message)
        return Observation(record, over: nil, confirmed: nil, in: ReportingObjects())
    }

    private static func known(_ status: EntryStatus, editPosition: Int64 = 0) -> SubmissionState {
        let desired = seen(.released).desired
        var entry = desired.fields
        entry.status = status
        var ledger = Ledger()
        ledger.version = 7
        ledger.editPosition = editPosition > 0 && editPosition < 9 ? editPosition : 0
        ledger.backendID = "1"
        ledger.confirmed = Confirmed(desired: desired, status: status)
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
