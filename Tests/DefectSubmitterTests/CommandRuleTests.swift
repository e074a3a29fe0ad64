import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import TestSupport
import Testing

@testable import Compass
@testable import DefectSubmitter

@Suite(.ownThreads) struct CommandRuleTests {
    private let rule = CommandRule(
        lease: .seconds(90), settleMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60), attemptsMax: 20)
    private let modify = DefectCommand(
        operation: .modify, record: "R1", fields: ["Headline": "h"], submitRequested: true)
    private let create = DefectCommand(operation: .create, fields: ["Headline": "h"], submitRequested: true)

    private func state(
        _ command: DefectCommand, record: String? = nil, isOpen: Bool = false, lease: Duration = .zero
    ) -> CommandState {
        let attempt = Attempt(call: UUID(), record: record, leaseRemaining: lease)
        return CommandState(command: .live(command), attempt: isOpen ? attempt : nil)
    }

    @Test func ledgerIsSavedBeforeFirstCall() {
        let opened = rule.decide(state(modify), .event)
        #expect(opened.ledger == .save(record: "R1", lease: .seconds(90)) && opened.outcome == nil)
        #expect(
            opened.step == .call(.perform(modify, record: "R1", isNew: false, isUncertain: false)))
        let new = rule.decide(state(create), .event)
        #expect(new.ledger == .save(record: nil, lease: .seconds(90)) && new.step == .call(.openNew(create)))
    }

    /// The id of a new record is in the ledger before it can be saved.
    @Test func newRecordIDIsSavedBeforeCommit() {
        let session = Record(
            id: "R9",
            fields: [
                Field(
                    name: "Headline", type: nil, value: "", isReadable: true, requiredness: .mandatory, choices: nil,
                    message: nil)
            ])
        let opened = ActionResult.opened(record: "R9", session: session)
        let decision = rule.decide(state(create, isOpen: true, lease: .seconds(80)), .result(opened))
        #expect(decision.ledger == .save(record: "R9", lease: .seconds(90)))
        #expect(
            decision.step
                == .call(
                    .perform(create, record: "R9", isNew: true, isUncertain: false, session: session)))
        var closed = state(create, isOpen: true)
        closed.canCall = false
        #expect(rule.decide(closed, .result(opened)).ledger == .save(record: "R9", lease: .zero))
        #expect(rule.decide(closed, .result(opened)).step == .reprocess)
    }

    @Test func attemptWithinItsLeaseIsDeferred() {
        let decision = rule.decide(state(modify, record: "R1", isOpen: true, lease: .seconds(7)), .event)
        #expect(decision.ledger == .unchanged && decision.outcome == nil)
        guard case .deferred(_, .seconds(7), .planned) = decision.step else {
            Issue.record("\(decision)")
            return
        }
    }

    @Test func expiredAttemptIsUncertain() {
        let open = state(modify, record: "R1", isOpen: true)
        #expect(
            rule.decide(open, .event).step
                == .call(.perform(modify, record: "R1", isNew: false, isUncertain: true)))
        #expect(
            rule.decide(state(create, record: "R9", isOpen: true), .event).step
                == .call(.perform(create, record: "R9", isNew: true, isUncertain: true)))
        #expect(
            rule.decide(state(create, isOpen: true), .event).step == .call(.openNew(create)), "nothing can be saved")
        let unknown = rule.decide(
            state(modify, record: "R1", isOpen: true, lease: .seconds(50)),
            .result(.unknown(reason: "r", retryAfter: nil)))
        #expect(unknown.ledger == .save(record: "R1", lease: .seconds(30)))
        #expect(unknown.step == .deferred(reason: "r", after: .seconds(30), cause: .backendUnavailable))
    }

    @Test func resultsMapToStatus() {
        let results: [(ActionResult, DefectCommand.Status?)] = [
            (.done(record: "R1"), .done), (.choices(["a": ["b"]]), .done), (.detail(DefectDetail()), .done),
            (.refused(["no"]), .refused),
            (.refused([]), .refused), (.conflict(["c"]), .conflict), (.ambiguous(["u"]), .unknown),
            (.unauthorized(reason: "r", isUncertain: false), .refused),
            (.unauthorized(reason: "r", isUncertain: true), .unknown), (.concurrentCommit, nil),
            (.notProcessed(reason: "r", retryAfter: nil), nil), (.notSent(isUncertain: false), nil),
        ]
        for (result, status) in results {
            let decision = rule.decide(state(modify, record: "R1", isOpen: true, lease: .seconds(9)), .result(result))
            #expect(decision.outcome?.status == status, "\(result)")
            #expect(decision.ledger == .remove, "\(result)")
            #expect((decision.step == .finished) == (status != nil), "\(result)")
            if let outcome = decision.outcome, status != .done { #expect(!outcome.messages.isEmpty, "\(result)") }
        }
    }

    /// Reading saves nothing and has no unknown outcome.
    @Test(arguments: DefectCommand.Operation.allCases.filter(\.isReading))
    func readsNeverEndAsUnknown(operation: DefectCommand.Operation) {
        let command = DefectCommand(
            operation: operation, record: "R1", choicesOf: ["Severity"], query: "7", submitRequested: true)
        for record in ["R1", nil] {
            let open = state(command, record: record, isOpen: true, lease: .seconds(9))
            for result in [
                ActionResult.unauthorized(reason: "r", isUncertain: true), .unknown(reason: "r", retryAfter: nil),
            ] {
                let decision = rule.decide(open, .result(result), attemptCount: rule.attemptsMax)
                #expect(decision.outcome?.status == .refused, "\(result)")
            }
        }
    }

    /// A read without an edit session owns no record, and is repeated after a crash without a revert.
    @Test func sessionlessReadIsRepeated() {
        let reads: [(DefectCommand, DetailRequest)] = [
            (DefectCommand(operation: .read, record: "R1", submitRequested: true), .record("R1")),
            (DefectCommand(operation: .queries, folder: "", submitRequested: true), .folder(nil)),
            (DefectCommand(operation: .queries, folder: "8", submitRequested: true), .folder("8")),
            (
                DefectCommand(operation: .runQuery, query: "7", fromRow: 50, submitRequested: true),
                .rows(query: "7", first: 50)
            ),
        ]
        for (command, request) in reads {
            for isOpen in [false, true] {
                let decision = rule.decide(state(command, isOpen: isOpen), .event)
                #expect(decision.step == .call(.read(request)) && decision.outcome == nil)
                #expect(decision.ledger == .save(record: nil, lease: .seconds(90)))
            }
            let lost = rule.decide(
                state(command, isOpen: true, lease: .seconds(9)), .result(.unknown(reason: "r", retryAfter: nil)))
            #expect(lost.ledger == .remove && lost.outcome == nil, "no other command waits for it")
        }
    }

    @Test func attemptsAreLimited() {
        let open = state(modify, record: "R1", isOpen: true, lease: .seconds(9))
        let unavailable = ActionResult.notProcessed(reason: "r", retryAfter: .seconds(100))
        let retry = rule.decide(open, .result(unavailable), attemptCount: 3)
        #expect(retry.step == .deferred(reason: "r", after: .seconds(100), cause: .retryAfter(.seconds(100))))
        #expect(rule.decide(open, .result(unavailable), attemptCount: 19).outcome?.status == .refused)
        let unknown = ActionResult.unknown(reason: "r", retryAfter: nil)
        #expect(rule.decide(open, .result(unknown), attemptCount: 19).outcome?.status == .unknown)
        #expect((0...40).map { rule.retryWait($0) }.max() == .seconds(60))
    }

    @Test func deletedCommandRevertsItsSession() {
        for command in [CommandState.Command.missing, .tombstone] {
            #expect(rule.decide(CommandState(command: command), .event) == CommandDecision(step: .finished))
            let named = CommandState(command: command, attempt: Attempt(call: UUID(), record: "R1"))
            #expect(rule.decide(named, .event).step == .call(.revert(record: "R1")))
            #expect(rule.decide(named, .result(.reverted)) == CommandDecision(ledger: .remove, step: .finished))
            let new = CommandState(command: command, attempt: Attempt(call: UUID(), record: nil))
            #expect(rule.decide(new, .event) == CommandDecision(ledger: .remove, step: .finished))
            let session = Record(id: "R2", fields: [])
            let opened = rule.decide(new, .result(.opened(record: "R2", session: session)))
            #expect(opened.step == .call(.revert(record: "R2")) && opened.outcome == nil)
        }
    }

    @Test func finishedAndDraftCommandsAreIgnored() {
        var draft = modify
        draft.submitRequested = false
        #expect(rule.decide(state(draft), .event) == CommandDecision(step: .finished))
        for status in DefectCommand.Status.allCases where status != .waiting {
            var done = modify
            done.status = status
            #expect(rule.decide(state(done), .event) == CommandDecision(step: .finished))
        }
    }
}

@Suite(.ownThreads) struct ComparisonRuleTests {
    @Test func conflictIsNeitherBaseNorDesiredValue() {
        func conflicts(_ base: [String: String], _ desired: [String: String]) -> [String] {
            ComparisonRule.conflicts(base: base, desired: desired, ["A": "1", "B": "x\r\ny\n", "C": ""])
        }
        #expect(conflicts(["A": "1", "B": "x\ny", "C": ""], ["A": "2"]).isEmpty)
        #expect(conflicts(["A": "0"], ["A": "1"]).isEmpty, "it already has the desired value")
        #expect(conflicts(["A": "0"], ["A": "2"]) == ["A is now '1', not '0'; requested: '2'"])
        #expect(conflicts(["A": "0"], ["B": "2"]) == ["A is now '1', not '0'"])
        #expect(conflicts(["D": "0"], [:]) == ["D is now empty, not '0'"])
        #expect(conflicts(["B": "z", "A": "0"], [:]).count == 2)
        let long = conflicts(["A": String(repeating: "z", count: 300)], [:])
        #expect(long.allSatisfy { $0.count < 150 })
    }

    @Test func blankMandatoryFieldIsMissing() {
        let mandatory = ["Headline": "h", "Severity": "", "Owner": " "]
        #expect(
            ComparisonRule.missing(mandatory, desired: [:]) == [
                "Owner must have a value", "Severity must have a value",
            ])
        #expect(ComparisonRule.missing(mandatory, desired: ["Owner": "o", "Severity": "s"]).isEmpty)
        #expect(ComparisonRule.missing(["Headline": "h"], desired: ["Headline": "\n"]).count == 1)
    }

    @Test func desiredValuesCompareGivenFieldsOnly() {
        #expect(ComparisonRule.hasDesiredValues(["A": "1"], ["A": "1", "B": "2"]))
        #expect(
            ComparisonRule.hasDesiredValues(["A": ""], [:]) && !ComparisonRule.hasDesiredValues(["A": "2"], ["A": "1"]))
    }
}
