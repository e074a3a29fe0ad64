import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

/// Requests of a person that are refused.
@Suite(.ownThreads) struct RefusalTests {
    private let desired = DesiredRecord(
        day: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600, text: "work", references: [:],
        fields: TimeEntry(text: "work", entryDate: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600))

    private func ledger(_ operation: Ledger.Operation, _ phase: Ledger.Phase = .open) -> Ledger {
        var ledger = Ledger()
        (ledger.version, ledger.phase, ledger.operation, ledger.editPosition) = (3, phase, operation, 1)
        return ledger
    }

    private func entry(_ change: (inout TimeEntry) -> Void) -> SubmissionState.Entry {
        var entry = desired.fields
        (entry.status, entry.submitRequested) = (.submitted, true)
        change(&entry)
        return .live(entry, editPosition: 2)
    }

    /// Only the record's id is known: the response was lost, and the record has other values.
    @Test func refusedDeletionOfUnconfirmedRecordIsReverted() {
        var ledger = ledger(.delete)
        ledger.backendID = "1"
        let decision = SubmissionWorld.rule.decide(
            SubmissionState(entry: entry { $0.deleteRequested = true }, ledger: ledger),
            .result(.refused(["no"]), version: 3))
        #expect(decision.entry == .patch(EntryPatch(status: .invalid, backendID: "1", deleteRequested: false)))
        #expect(decision.log == [.init(status: .invalid, message: "no", code: .refused)])
        #expect(decision.ledger?.phase == .settled && decision.ledger?.editPosition == 0)
    }

    /// The record is closed: an earlier edit or a request to delete it would remain open for ever.
    @Test(arguments: [Ledger.Phase.open, .finding]) func requestForRecordedEntryIsReverted(phase: Ledger.Phase) {
        var ledger = ledger(.create, phase)
        ledger.desired = desired
        let record = BackendEntry(
            id: "1", marker: "m", day: desired.day, durationSeconds: 3_600, text: "work", status: .recorded,
            references: [:])
        let state = SubmissionState(
            entry: entry { ($0.durationSeconds, $0.deleteRequested) = (7_200, true) }, ledger: ledger)
        let decision = SubmissionWorld.rule.decide(state, .result(.record(record), version: 3))
        #expect(
            decision.entry
                == .patch(
                    EntryPatch(
                        status: .recorded, backendID: "1", deleteRequested: false, submitRequested: true,
                        restored: desired.fields)))
    }

    /// An attempt had no effect, and the entry meanwhile equals the back end's record: the newest line of the log still
    /// has the status.
    @Test func revertedEditIsLogged() {
        var ledger = ledger(.update, .finding)
        (ledger.backendID, ledger.desired) = ("1", desired)
        ledger.desired?.durationSeconds = 7_200
        ledger.confirmed = Confirmed(desired: desired, status: .released)
        var state = SubmissionState(entry: entry { _ in }, ledger: ledger)
        state.desired = desired
        let record = BackendEntry(
            id: "1", marker: "m", day: desired.day, durationSeconds: 3_600, text: "work", status: .released,
            references: [:])
        let decision = SubmissionWorld.rule.decide(state, .result(.record(record), version: 3))
        #expect(decision.entry == .patch(EntryPatch(status: .released)))
        #expect(decision.log == [.init(status: .released)])
    }

    /// The back end alters texts in the same way each time; other hours are a change that a person made there.
    @Test(arguments: [false, true]) func editIsSentUnlessOnlyItsTextWasAltered(hasOtherHours: Bool) {
        var ledger = ledger(.update)
        var altered = desired
        if hasOtherHours { altered.durationSeconds = 7_200 } else { altered.text = "w?rk" }
        (ledger.version, ledger.phase, ledger.editPosition) = (3, .settled, 1)
        (ledger.backendID, ledger.confirmed) = ("1", Confirmed(desired: altered, status: .released, sent: desired))
        var state = SubmissionState(entry: entry { _ in }, ledger: ledger)
        (state.desired, state.isValidated) = (desired, true)
        let decision = SubmissionWorld.rule.decide(state, .change)
        if case .call(let call) = decision.step, case .update(_, let sent) = call.action {
            #expect(hasOtherHours && sent.durationSeconds == 3_600)
        } else {
            #expect(!hasOtherHours && decision.log.last?.code == .altered, "\(decision)")
        }
    }

    /// The device edited it again while the call for the earlier edit was in flight: the refusal is logged, and the
    /// newer edit is kept and submitted next.
    @Test(arguments: [Ledger.Operation.create, .update]) func refusalOfOlderEditKeepsNewerEdit(
        operation: Ledger.Operation
    ) throws {
        var ledger = ledger(operation)
        ledger.desired = desired
        if operation == .update {
            (ledger.backendID, ledger.confirmed) = ("1", Confirmed(desired: desired, status: .released))
        }
        var state = SubmissionState(entry: entry { $0.text = "newer" }, ledger: ledger)
        let decision = SubmissionWorld.rule.decide(state, .result(.refused(["no"]), version: 3))
        #expect(decision.entry == nil && decision.step == .reprocess)
        #expect(decision.log == [.init(status: .submitted, message: "no", code: .refused)])

        state.ledger = decision.ledger
        state.desired = desired
        state.desired?.text = "newer"
        guard case .call(let call) = SubmissionWorld.rule.decide(state, .change).step else {
            Issue.record("the newer edit is not submitted")
            return
        }
        switch call.action {
        case .create(let desired): #expect(operation == .create && desired.text == "newer")
        case .update(_, let desired): #expect(operation == .update && desired.text == "newer")
        case .delete, .find: Issue.record("\(call)")
        }
    }

    /// A closed record accepts no edit: after a refused deletion the entry gets the values of the record.
    @Test func refusedDeletionOfClosedRecordRestoresEntry() {
        var ledger = ledger(.delete)
        (ledger.backendID, ledger.confirmed) = ("1", Confirmed(desired: desired, status: .recorded))
        let state = SubmissionState(
            entry: entry { ($0.text, $0.deleteRequested) = ("newer", true) }, ledger: ledger)
        let decision = SubmissionWorld.rule.decide(state, .result(.refused(["no"]), version: 3))
        #expect(
            decision.entry
                == .patch(
                    EntryPatch(
                        status: .recorded, deleteRequested: false, submitRequested: true, restored: desired.fields)))
    }

    /// An integration deleted the entry, and the back end refuses to delete its record: the entry is restored with the
    /// values of the record.
    @Test func entryIsRestoredIfRecordDeletionIsRefused() throws {
        var ledger = ledger(.delete)
        (ledger.backendID, ledger.confirmed) = ("1", Confirmed(desired: desired, status: .approved))
        let decision = SubmissionWorld.rule.decide(
            SubmissionState(entry: .tombstone, ledger: ledger), .result(.refused(["no"]), version: 3))
        guard case .put(let fields) = decision.entry else {
            Issue.record("\(decision)")
            return
        }
        #expect(fields.status == .approved && fields.backendId == "1" && fields.text == "work")
        #expect(
            decision.log == [.init(status: .approved, message: "no", code: .refused)] && decision.step == .reprocess)
    }
}
