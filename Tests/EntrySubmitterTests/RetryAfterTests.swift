import Backends
import KeyedWorker
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

/// A back end that sends `Retry-After`, and calls that were not sent.
@Suite(.ownThreads) struct RetryAfterTests {
    private static let rule = SubmissionRule(
        lease: .seconds(70), settleMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60))

    /// No call is made before `Retry-After`, for this entry or others; an unknown outcome is looked up afterwards.
    @Test(arguments: [
        (SubmissionResult.notProcessed(reason: "429", retryAfter: .seconds(90)), Ledger.Phase.settled),
        (.unknown(reason: "503", recordID: nil, retryAfter: .seconds(90)), .unknown),
    ]) func retryAfterDefersEntryAndBackend(answer: SubmissionResult, phase: Ledger.Phase) {
        let decision = Self.rule.decide(state(.open), .result(answer, version: 7))
        guard case .deferred(_, .seconds(90), .retryAfter(.seconds(90))) = decision.step else {
            Issue.record("\(decision.step)")
            return
        }
        #expect(decision.ledger?.phase == phase && decision.entry == nil && decision.log.isEmpty)
    }

    /// The settling of an outcome delays only its entry; `Retry-After` delays all calls.
    @Test func settlingDelaysOnlyItsEntry() {
        let busy = SubmissionResult.unknown(reason: "503", recordID: nil, retryAfter: .seconds(1))
        let decision = Self.rule.decide(state(.open), .result(busy, version: 7))
        #expect(decision.step == .deferred(reason: "503", after: .seconds(30), cause: .retryAfter(.seconds(1))))
    }

    /// The back end returned the new record's id, but was too busy to return the record: it is read soon. If it is
    /// missing, it may still become visible, and is created again only after settling.
    @Test func recordWithReturnedIDIsReadSoonAndCreatedAgainAfterSettling() throws {
        let named = SubmissionResult.unknown(reason: "429", recordID: "1", retryAfter: .seconds(2))
        var state = state(.open)
        let decision = Self.rule.decide(state, .result(named, version: 7))
        #expect(decision.step == .deferred(reason: "429", after: .seconds(2), cause: .retryAfter(.seconds(2))))
        state.ledger = decision.ledger
        let reading = Self.rule.decide(state, .change)
        guard case .call(let call) = reading.step, case .find("1", _) = call.action else {
            Issue.record("\(reading.step)")
            return
        }
        state.ledger = reading.ledger
        let absent = Self.rule.decide(state, .result(.absent, version: call.version))
        guard case .deferred(_, .seconds(30), .planned) = absent.step else {
            Issue.record("\(absent.step)")
            return
        }
        #expect(absent.ledger?.phase == .unknown && absent.ledger?.backendID == nil)
    }

    /// Nothing was sent: an open write is restarted, and a lookup is repeated.
    @Test(arguments: [(Ledger.Phase.open, Ledger.Phase.settled), (.finding, .unknown)])
    func unsentCallHasNoEffect(before: Ledger.Phase, after: Ledger.Phase) {
        let decision = Self.rule.decide(state(before), .result(.notMade, version: 7))
        guard case .deferred(_, .seconds(1), .planned) = decision.step else {
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
