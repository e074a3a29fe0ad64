import Backends
import KeyedWorker
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

/// A back end that says when to call again, and calls that were never made.
@Suite(.ownThreads) struct AskedToWaitTests {
    private static let rule = SubmissionRule(
        lease: .seconds(70), settleMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60))

    /// It is not the entry's turn before, and all others' neither; what may have been done is looked up then.
    @Test(arguments: [
        (SubmissionAnswer.notProcessed(reason: "429", retryAfter: .seconds(90)), Ledger.Phase.settled),
        (.unknown(reason: "503", recordID: nil, retryAfter: .seconds(90)), .unknown),
    ]) func itIsLeftAloneForAsLongAsItSays(answer: SubmissionAnswer, phase: Ledger.Phase) {
        let decision = Self.rule.decide(state(.open), .answer(answer, version: 7))
        guard case .park(_, .seconds(90), .askedToWait(.seconds(90))) = decision.step else {
            Issue.record("\(decision.step)")
            return
        }
        #expect(decision.ledger?.phase == phase && decision.entry == nil && decision.log.isEmpty)
    }

    /// What its outcome needs to settle is its own wait; the back end is left alone for what it asked for.
    @Test func whatOneEntryWaitsForIsNobodyElsesWait() {
        let busy = SubmissionAnswer.unknown(reason: "503", recordID: nil, retryAfter: .seconds(1))
        let decision = Self.rule.decide(state(.open), .answer(busy, version: 7))
        #expect(decision.step == .park(reason: "503", after: .seconds(30), cause: .askedToWait(.seconds(1))))
    }

    /// The back end has named the new record, and was only too busy to tell what it is: it is read soon. Not found, it
    /// may still come; it is made anew after that has settled.
    @Test func aRecordThatWasNamedIsReadSoonAndNotMadeAnewSoon() throws {
        let named = SubmissionAnswer.unknown(reason: "429", recordID: "1", retryAfter: .seconds(2))
        var state = state(.open)
        let decision = Self.rule.decide(state, .answer(named, version: 7))
        #expect(decision.step == .park(reason: "429", after: .seconds(2), cause: .askedToWait(.seconds(2))))
        state.ledger = decision.ledger
        let reading = Self.rule.decide(state, .look)
        guard case .call(let call) = reading.step, case .find("1", _) = call.action else {
            Issue.record("\(reading.step)")
            return
        }
        state.ledger = reading.ledger
        let absent = Self.rule.decide(state, .answer(.absent, version: call.version))
        guard case .park(_, .seconds(30), .planned) = absent.step else {
            Issue.record("\(absent.step)")
            return
        }
        #expect(absent.ledger?.phase == .unknown && absent.ledger?.backendID == nil)
    }

    /// Nothing was sent: what was open is begun anew, and what was to be found out is still to be found out.
    @Test(arguments: [(Ledger.Phase.open, Ledger.Phase.settled), (.finding, .unknown)])
    func aCallThatWasNotMadeDidNothing(before: Ledger.Phase, after: Ledger.Phase) {
        let decision = Self.rule.decide(state(before), .answer(.notMade, version: 7))
        guard case .park(_, .seconds(1), .planned) = decision.step else {
            Issue.record("\(decision.step)")
            return
        }
        #expect(decision.ledger?.phase == after && decision.ledger?.version == 8)
        #expect(decision.ledger?.editPosition == (after == .settled ? 0 : 5))
    }

    private func state(_ phase: Ledger.Phase) -> SubmissionState {
        var ledger = Ledger()
        (ledger.version, ledger.phase, ledger.editPosition) = (7, phase, 5)
        return SubmissionState(entry: .live(TimeEntry(submitRequested: true), editPosition: 5), ledger: ledger)
    }
}
