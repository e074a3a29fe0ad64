import Backends
import Model
import Pipeline
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
        guard case .park(_, .seconds(90), .askedToWait) = decision.step else {
            Issue.record("\(decision.step)")
            return
        }
        #expect(decision.ledger?.phase == phase && decision.entry == nil && decision.log.isEmpty)
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
