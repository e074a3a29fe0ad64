import Essentials
import KeyedWorker
import Model

/// Decides what happens next with a command.
///
/// Before the first call the ledger has a row for the record, which goes in the transaction that says what came of the
/// command. A row whose calls are over, and nobody has heard how they ended, is of something that may have been done:
/// its session is ended, and the record read and compared, before anything is repeated.
struct CommandRule: Sendable {
    enum Origin: Equatable, Sendable {
        case look
        case answer(CommandAnswer)
    }

    /// Calls of an attempt are over after so long.
    let lease: Duration
    /// What is unknown is left alone for so long: the tracker may save it late.
    let settleMin: Duration
    /// The first wait after a tracker that could not work; it doubles.
    let retryMin: Duration
    let retryMax: Duration
    /// Tries after which a command ends without having been done.
    let attemptsMax: Int

    /// How often a command looks whether it has its turn.
    static let turnWait = Duration.milliseconds(500)

    func decide(_ state: CommandState, _ origin: Origin, attemptCount: Int = 0) -> CommandDecision {
        switch origin {
        case .look: look(state)
        case .answer(let answer): hear(answer, state, attemptCount)
        }
    }

    // MARK: Looking

    private func look(_ state: CommandState) -> CommandDecision {
        if let attempt = state.attempt, attempt.leaseRemaining > .zero {
            return CommandDecision(
                step: .park(reason: "a call of it may be under way", after: attempt.leaseRemaining, cause: .planned))
        }
        switch state.command {
        case .missing, .tombstone: return abandon(state)
        case .live(let command):
            guard command.status == .waiting, command.submitRequested else {
                return CommandDecision(ledger: state.attempt == nil ? .unchanged : .forget, step: .finished)
            }
            return state.attempt.map { resume(command, $0, state) } ?? begin(command, state)
        }
    }

    /// A command that is gone: what was begun for it is ended, where it can be.
    private func abandon(_ state: CommandState) -> CommandDecision {
        guard let attempt = state.attempt else { return CommandDecision(step: .finished) }
        guard let record = attempt.record, state.objection == nil, !state.isTrackerAnother else {
            return CommandDecision(ledger: .forget, step: .finished)
        }
        return call(.revert(record: record), record: record)
    }

    private func begin(_ command: DefectCommand, _ state: CommandState) -> CommandDecision {
        let problems = ComparisonRule.problems(of: command)
        if !problems.isEmpty { return end(.refused, problems, state) }
        if let objection = state.objection { return end(.refused, [objection], state) }
        guard state.hasTurn else {
            return CommandDecision(
                step: .park(reason: "another command of the record comes first", after: Self.turnWait, cause: .planned))
        }
        return start(command)
    }

    private func start(_ command: DefectCommand) -> CommandDecision {
        guard let record = command.existingRecord else { return call(.begin(command), record: nil) }
        return call(
            .carryOut(command, record: record, isNew: false, isUncertain: false), record: record)
    }

    /// An attempt of which nobody heard the end.
    private func resume(_ command: DefectCommand, _ attempt: Attempt, _ state: CommandState) -> CommandDecision {
        if state.isTrackerAnother || state.objection != nil {
            let reason = state.objection ?? "the environment's tracker is another one by now"
            guard state.mayBeSaved else { return end(.refused, [reason], state) }
            return end(.unknown, ["Whether it was done cannot be found out: \(reason)"], state)
        }
        // A new record without an id was not saved.
        guard let record = attempt.record else { return call(.begin(command), record: nil) }
        return call(
            .carryOut(command, record: record, isNew: command.existingRecord == nil, isUncertain: true),
            record: record)
    }

    // MARK: Deciding

    /// The ledger says so before the call is made.
    func call(_ action: CommandAction, record: String?) -> CommandDecision {
        CommandDecision(ledger: .keep(record: record, lease: lease), step: .call(action))
    }

    /// What came of it is said, and the record is free.
    func end(
        _ status: DefectCommand.Status, _ messages: [String], _ state: CommandState, record: String? = nil,
        choices: [String: [String]]? = nil
    ) -> CommandDecision {
        var decision = CommandDecision(ledger: state.attempt == nil ? .unchanged : .forget, step: .finished)
        if case .live(let command) = state.command, command.status == .waiting {
            decision.outcome = CommandDecision.Outcome(
                status: status, messages: messages, record: record, choices: choices)
        }
        return decision
    }

    func retryWait(_ attemptCount: Int) -> Duration { min(retryMin * (1 << min(attemptCount, 16)), retryMax) }
}

extension DefectCommand {
    /// The record it is about; `nil` when that is a new one.
    var existingRecord: String? {
        switch operation {
        case .create: nil
        case .modify, .changeState, .delete: record
        case .choices: record.flatMap { $0.isEmpty ? nil : $0 }
        }
    }
}
