import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import Testing

@testable import DefectSubmitter

@Suite struct CommandRuleTests {
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

    @Test func theLedgerSaysSoBeforeTheFirstCall() {
        let begun = rule.decide(state(modify), .look)
        #expect(begun.ledger == .keep(record: "R1", lease: .seconds(90)) && begun.outcome == nil)
        #expect(
            begun.step == .call(.carryOut(modify, record: "R1", isNew: false, isUncertain: false)))
        let new = rule.decide(state(create), .look)
        #expect(new.ledger == .keep(record: nil, lease: .seconds(90)) && new.step == .call(.begin(create)))
    }

    /// The id of a new record is in the ledger before it can be saved.
    @Test func theIDIsWrittenDownBeforeTheCommit() {
        let begun = CommandAnswer.begun(record: "R9", mandatory: ["Headline": ""])
        let decision = rule.decide(state(create, isOpen: true, lease: .seconds(80)), .answer(begun))
        #expect(decision.ledger == .keep(record: "R9", lease: .seconds(90)))
        #expect(
            decision.step
                == .call(
                    .carryOut(create, record: "R9", isNew: true, isUncertain: false, mandatory: ["Headline": ""])))
        var closed = state(create, isOpen: true)
        closed.canCall = false
        #expect(rule.decide(closed, .answer(begun)).ledger == .keep(record: "R9", lease: .zero))
        #expect(rule.decide(closed, .answer(begun)).step == .again)
    }

    @Test func whatMayBeUnderWayIsLeftAlone() {
        let decision = rule.decide(state(modify, record: "R1", isOpen: true, lease: .seconds(7)), .look)
        #expect(decision.ledger == .unchanged && decision.outcome == nil)
        guard case .park(_, .seconds(7), .planned) = decision.step else {
            Issue.record("\(decision)")
            return
        }
    }

    @Test func whatNobodyHeardTheEndOfIsUncertain() {
        let open = state(modify, record: "R1", isOpen: true)
        #expect(
            rule.decide(open, .look).step
                == .call(.carryOut(modify, record: "R1", isNew: false, isUncertain: true)))
        #expect(
            rule.decide(state(create, record: "R9", isOpen: true), .look).step
                == .call(.carryOut(create, record: "R9", isNew: true, isUncertain: true)))
        #expect(rule.decide(state(create, isOpen: true), .look).step == .call(.begin(create)), "nothing can be saved")
        let unknown = rule.decide(
            state(modify, record: "R1", isOpen: true, lease: .seconds(50)),
            .answer(.unknown(reason: "r", retryAfter: nil)))
        #expect(unknown.ledger == .keep(record: "R1", lease: .seconds(30)))
        #expect(unknown.step == .park(reason: "r", after: .seconds(30), cause: .backendAway))
    }

    @Test func eachAnswerHasItsStatus() {
        let answers: [(CommandAnswer, DefectCommand.Status?)] = [
            (.done(record: "R1"), .done), (.choices(["a": ["b"]]), .done), (.refused(["no"]), .refused),
            (.refused([]), .refused), (.conflict(["c"]), .conflict), (.unclear(["u"]), .unknown),
            (.unauthorized(reason: "r", isUncertain: false), .refused),
            (.unauthorized(reason: "r", isUncertain: true), .unknown), (.overtaken, nil),
            (.notProcessed(reason: "r", retryAfter: nil), nil), (.notMade(isUncertain: false), nil),
        ]
        for (answer, status) in answers {
            let decision = rule.decide(state(modify, record: "R1", isOpen: true, lease: .seconds(9)), .answer(answer))
            #expect(decision.outcome?.status == status, "\(answer)")
            #expect(decision.ledger == .forget, "\(answer)")
            #expect((decision.step == .finished) == (status != nil), "\(answer)")
            if let outcome = decision.outcome, status != .done { #expect(!outcome.messages.isEmpty, "\(answer)") }
        }
    }

    /// Reading what can be chosen saves nothing, whatever became of it.
    @Test func choicesAreNeverUnknown() {
        let choices = DefectCommand(
            operation: .choices, record: "R1", choicesOf: ["Severity"], submitRequested: true)
        let open = state(choices, record: "R1", isOpen: true, lease: .seconds(9))
        for answer in [
            CommandAnswer.unauthorized(reason: "r", isUncertain: true), .unknown(reason: "r", retryAfter: nil),
        ] {
            let decision = rule.decide(open, .answer(answer), attemptCount: rule.attemptsMax)
            #expect(decision.outcome?.status == .refused, "\(answer)")
        }
    }

    @Test func triesAreBounded() {
        let open = state(modify, record: "R1", isOpen: true, lease: .seconds(9))
        let away = CommandAnswer.notProcessed(reason: "r", retryAfter: .seconds(100))
        let later = rule.decide(open, .answer(away), attemptCount: 3)
        #expect(later.step == .park(reason: "r", after: .seconds(100), cause: .askedToWait(.seconds(100))))
        #expect(rule.decide(open, .answer(away), attemptCount: 19).outcome?.status == .refused)
        let unknown = CommandAnswer.unknown(reason: "r", retryAfter: nil)
        #expect(rule.decide(open, .answer(unknown), attemptCount: 19).outcome?.status == .unknown)
        #expect((0...40).map { rule.retryWait($0) }.max() == .seconds(60))
    }

    @Test func aCommandThatIsGoneLeavesNothing() {
        for command in [CommandState.Command.missing, .tombstone] {
            #expect(rule.decide(CommandState(command: command), .look) == CommandDecision(step: .finished))
            let named = CommandState(command: command, attempt: Attempt(call: UUID(), record: "R1"))
            #expect(rule.decide(named, .look).step == .call(.revert(record: "R1")))
            #expect(rule.decide(named, .answer(.reverted)) == CommandDecision(ledger: .forget, step: .finished))
            let new = CommandState(command: command, attempt: Attempt(call: UUID(), record: nil))
            #expect(rule.decide(new, .look) == CommandDecision(ledger: .forget, step: .finished))
            let begun = rule.decide(new, .answer(.begun(record: "R2", mandatory: [:])))
            #expect(begun.step == .call(.revert(record: "R2")) && begun.outcome == nil)
        }
    }

    @Test func whatIsDoneOrNotHandedInIsLeftAlone() {
        var draft = modify
        draft.submitRequested = false
        #expect(rule.decide(state(draft), .look) == CommandDecision(step: .finished))
        for status in DefectCommand.Status.allCases where status != .waiting {
            var done = modify
            done.status = status
            #expect(rule.decide(state(done), .look) == CommandDecision(step: .finished))
        }
    }
}

@Suite struct ComparisonRuleTests {
    @Test func aConflictIsWhatIsNeitherAsSeenNorAsWanted() {
        func conflicts(_ base: [String: String], _ wanted: [String: String]) -> [String] {
            ComparisonRule.conflicts(base: base, wanted: wanted, ["A": "1", "B": "x\r\ny\n", "C": ""])
        }
        #expect(conflicts(["A": "1", "B": "x\ny", "C": ""], ["A": "2"]).isEmpty)
        #expect(conflicts(["A": "0"], ["A": "1"]).isEmpty, "it is as wanted already")
        #expect(conflicts(["A": "0"], ["A": "2"]) == ["A is '1' by now, and not '0' any more; wanted was '2'"])
        #expect(conflicts(["A": "0"], ["B": "2"]) == ["A is '1' by now, and not '0' any more"])
        #expect(conflicts(["D": "0"], [:]) == ["D is empty by now, and not '0' any more"])
        #expect(conflicts(["B": "z", "A": "0"], [:]).count == 2)
        let long = conflicts(["A": String(repeating: "z", count: 300)], [:])
        #expect(long.allSatisfy { $0.count < 150 })
    }

    @Test func whatIsBlankIsMissing() {
        let mandatory = ["Headline": "h", "Severity": "", "Owner": " "]
        #expect(
            ComparisonRule.missing(mandatory, wanted: [:]) == ["Owner must have a value", "Severity must have a value"])
        #expect(ComparisonRule.missing(mandatory, wanted: ["Owner": "o", "Severity": "s"]).isEmpty)
        #expect(ComparisonRule.missing(["Headline": "h"], wanted: ["Headline": "\n"]).count == 1)
    }

    @Test func whatIsWantedIsComparedByTheFieldsThatAreGiven() {
        #expect(ComparisonRule.isAsWanted(["A": "1"], ["A": "1", "B": "2"]))
        #expect(ComparisonRule.isAsWanted(["A": ""], [:]) && !ComparisonRule.isAsWanted(["A": "2"], ["A": "1"]))
    }
}
