import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

/// What a person asked for and does not get.
@Suite(.ownThreads) struct RefusalTests {
    private let wanted = Wanted(
        day: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600, text: "work", references: [:],
        fields: TimeEntry(text: "work", entryDate: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600))

    private func ledger(_ operation: Ledger.Operation, _ phase: Ledger.Phase = .open) -> Ledger {
        var ledger = Ledger()
        (ledger.version, ledger.phase, ledger.operation, ledger.editPosition) = (3, phase, operation, 1)
        return ledger
    }

    private func entry(_ change: (inout TimeEntry) -> Void) -> SubmissionState.Entry {
        var entry = wanted.fields
        (entry.status, entry.submitRequested) = (.submitted, true)
        change(&entry)
        return .live(entry, editPosition: 2)
    }

    /// Nothing is known of the record but its id: an attempt was lost, and found with other values.
    @Test func theDeletionOfARecordThatWasNeverConfirmedIsTakenBack() {
        var ledger = ledger(.delete)
        ledger.backendID = "1"
        let decision = SubmissionWorld.rule.decide(
            SubmissionState(entry: entry { $0.deleteRequested = true }, ledger: ledger),
            .answer(.refused(["no"]), version: 3))
        #expect(decision.entry == .patch(EntryPatch(status: .invalid, backendID: "1", deleteRequested: false)))
        #expect(decision.log == [.init(status: .invalid, message: "no", code: .refused)])
        #expect(decision.ledger?.phase == .settled && decision.ledger?.editPosition == 0)
    }

    /// It is closed: an edit, or the wish to delete it, that was made before anybody knew would stay for ever.
    @Test(arguments: [Ledger.Phase.open, .finding]) func whatIsAskedOfARecordedEntryComesTooLate(phase: Ledger.Phase) {
        var ledger = ledger(.create, phase)
        ledger.wanted = wanted
        let record = BackendEntry(
            id: "1", marker: "m", day: wanted.day, durationSeconds: 3_600, text: "work", status: .recorded,
            references: [:])
        let state = SubmissionState(
            entry: entry { ($0.durationSeconds, $0.deleteRequested) = (7_200, true) }, ledger: ledger)
        let decision = SubmissionWorld.rule.decide(state, .answer(.record(record), version: 3))
        #expect(
            decision.entry
                == .patch(
                    EntryPatch(
                        status: .recorded, backendID: "1", deleteRequested: false, submitRequested: true,
                        restored: wanted.fields)))
    }

    /// An attempt is over without effect, and what is wanted by then is what the back end holds: the newest line of the
    /// log tells the status all the same.
    @Test func anEditThatIsTakenBackIsToldInTheLog() {
        var ledger = ledger(.update, .finding)
        (ledger.backendID, ledger.wanted) = ("1", wanted)
        ledger.wanted?.durationSeconds = 7_200
        ledger.confirmed = Confirmed(wanted: wanted, status: .released)
        var state = SubmissionState(entry: entry { _ in }, ledger: ledger)
        state.wanted = wanted
        let record = BackendEntry(
            id: "1", marker: "m", day: wanted.day, durationSeconds: 3_600, text: "work", status: .released,
            references: [:])
        let decision = SubmissionWorld.rule.decide(state, .answer(.record(record), version: 3))
        #expect(decision.entry == .patch(EntryPatch(status: .released)))
        #expect(decision.log == [.init(status: .released)])
    }

    /// The back end alters texts in the same way each time; other hours are a change that a person made there.
    @Test(arguments: [false, true]) func editIsSentUnlessOnlyItsTextWasAltered(hasOtherHours: Bool) {
        var ledger = ledger(.update)
        var kept = wanted
        if hasOtherHours { kept.durationSeconds = 7_200 } else { kept.text = "w?rk" }
        (ledger.version, ledger.phase, ledger.editPosition) = (3, .settled, 1)
        (ledger.backendID, ledger.confirmed) = ("1", Confirmed(wanted: kept, status: .released, sent: wanted))
        var state = SubmissionState(entry: entry { _ in }, ledger: ledger)
        (state.wanted, state.isChecked) = (wanted, true)
        let decision = SubmissionWorld.rule.decide(state, .look)
        if case .call(let call) = decision.step, case .update(_, let sent) = call.action {
            #expect(hasOtherHours && sent.durationSeconds == 3_600)
        } else {
            #expect(!hasOtherHours && decision.log.last?.code == .altered, "\(decision)")
        }
    }

    /// The device edited it again while the call for the edit before was under way: the refusal is told, what was
    /// written since stays, and is submitted in its turn.
    @Test(arguments: [Ledger.Operation.create, .update]) func aRefusalOfAnOlderEditLeavesTheNewerOne(
        operation: Ledger.Operation
    ) throws {
        var ledger = ledger(operation)
        ledger.wanted = wanted
        if operation == .update {
            (ledger.backendID, ledger.confirmed) = ("1", Confirmed(wanted: wanted, status: .released))
        }
        var state = SubmissionState(entry: entry { $0.text = "newer" }, ledger: ledger)
        let decision = SubmissionWorld.rule.decide(state, .answer(.refused(["no"]), version: 3))
        #expect(decision.entry == nil && decision.step == .again)
        #expect(decision.log == [.init(status: .submitted, message: "no", code: .refused)])

        state.ledger = decision.ledger
        state.wanted = wanted
        state.wanted?.text = "newer"
        guard case .call(let call) = SubmissionWorld.rule.decide(state, .look).step else {
            Issue.record("the newer edit is not submitted")
            return
        }
        switch call.action {
        case .create(let wanted): #expect(operation == .create && wanted.text == "newer")
        case .update(_, let wanted): #expect(operation == .update && wanted.text == "newer")
        case .delete, .find: Issue.record("\(call)")
        }
    }

    /// A record that is closed takes no edit: after a refused deletion the entry becomes what the record holds.
    @Test func refusedDeletionOfClosedRecordRestoresTheEntry() {
        var ledger = ledger(.delete)
        (ledger.backendID, ledger.confirmed) = ("1", Confirmed(wanted: wanted, status: .recorded))
        let state = SubmissionState(
            entry: entry { ($0.text, $0.deleteRequested) = ("newer", true) }, ledger: ledger)
        let decision = SubmissionWorld.rule.decide(state, .answer(.refused(["no"]), version: 3))
        #expect(
            decision.entry
                == .patch(
                    EntryPatch(
                        status: .recorded, deleteRequested: false, submitRequested: true, restored: wanted.fields)))
    }

    /// An integration deleted the entry, and the back end does not let its record go: the entry is there again, with
    /// what the record holds.
    @Test func anEntryWhoseRecordStaysComesBack() throws {
        var ledger = ledger(.delete)
        (ledger.backendID, ledger.confirmed) = ("1", Confirmed(wanted: wanted, status: .approved))
        let decision = SubmissionWorld.rule.decide(
            SubmissionState(entry: .tombstone, ledger: ledger), .answer(.refused(["no"]), version: 3))
        guard case .put(let fields) = decision.entry else {
            Issue.record("\(decision)")
            return
        }
        #expect(fields.status == .approved && fields.backendId == "1" && fields.text == "work")
        #expect(decision.log == [.init(status: .approved, message: "no", code: .refused)] && decision.step == .again)
    }
}
