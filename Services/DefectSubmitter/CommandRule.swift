import Essentials
import KeyedWorker
import Model

/// Decides the next step of a command.
///
/// Before the first call, the ledger gets a row for the record. The row is removed in the transaction that writes the
/// command's outcome. A row with an expired lease belongs to a command with an unknown outcome: its session is
/// reverted, and the record is read and compared before anything is repeated.
struct CommandRule: Sendable {
    enum Origin: Equatable, Sendable {
        case event
        case result(ActionResult)
    }

    /// The time after which the calls of an attempt are over.
    let lease: Duration
    /// Delay before an unknown outcome is checked: the tracker may save late.
    let settleMin: Duration
    /// First delay of the exponential backoff while the tracker is unavailable.
    let retryMin: Duration
    let retryMax: Duration
    /// Attempts after which a command ends without success.
    let attemptsMax: Int

    /// Delay before the next check whether a command is next for its record.
    static let orderRetryDelay = Duration.milliseconds(500)

    func decide(_ state: CommandState, _ origin: Origin, attemptCount: Int = 0) -> CommandDecision {
        switch origin {
        case .event: evaluate(state)
        case .result(let result): handle(result, state, attemptCount)
        }
    }

    // MARK: Events

    private func evaluate(_ state: CommandState) -> CommandDecision {
        if let attempt = state.attempt, attempt.leaseRemaining > .zero {
            return CommandDecision(
                step: .deferred(
                    reason: "an earlier call may be in progress", after: attempt.leaseRemaining, cause: .planned))
        }
        switch state.command {
        case .missing, .tombstone: return abandon(state)
        case .live(let command):
            guard command.status == .waiting, command.submitRequested else {
                return CommandDecision(ledger: state.attempt == nil ? .unchanged : .remove, step: .finished)
            }
            return state.attempt.map { resume(command, $0, state) } ?? begin(command, state)
        }
    }

    /// Ends the session of a deleted command if possible.
    private func abandon(_ state: CommandState) -> CommandDecision {
        guard let attempt = state.attempt else { return CommandDecision(step: .finished) }
        guard let record = attempt.record, state.rejectionReason == nil, !state.hasTrackerChanged else {
            return CommandDecision(ledger: .remove, step: .finished)
        }
        return call(.revert(record: record), record: record)
    }

    private func begin(_ command: DefectCommand, _ state: CommandState) -> CommandDecision {
        let problems = ComparisonRule.problems(of: command)
        if !problems.isEmpty { return end(.refused, problems, state) }
        if let reason = state.rejectionReason { return end(.refused, [reason], state) }
        guard state.isNextForRecord else {
            return CommandDecision(
                step: .deferred(
                    reason: "another command for the record comes first", after: Self.orderRetryDelay, cause: .planned))
        }
        return start(command)
    }

    private func start(_ command: DefectCommand) -> CommandDecision {
        if let request = command.detailRequest { return call(.read(request), record: nil) }
        guard let record = command.existingRecord else { return call(.openNew(command), record: nil) }
        return call(
            .perform(command, record: record, isNew: false, isUncertain: false), record: record)
    }

    /// Resumes an attempt whose outcome is unknown.
    private func resume(_ command: DefectCommand, _ attempt: Attempt, _ state: CommandState) -> CommandDecision {
        if state.hasTrackerChanged || state.rejectionReason != nil {
            let reason = state.rejectionReason ?? "the environment's tracker has changed"
            guard state.mayBeSaved else { return end(.refused, [reason], state) }
            return end(.unknown, ["Whether it was done cannot be found out: \(reason)"], state)
        }
        // A new record without an id was not saved. Other attempts without a record only read.
        guard let record = attempt.record else { return start(command) }
        return call(
            .perform(command, record: record, isNew: command.existingRecord == nil, isUncertain: true),
            record: record)
    }

    // MARK: Decisions

    /// Saves the attempt in the ledger before the call.
    func call(_ action: CommandAction, record: String?) -> CommandDecision {
        CommandDecision(ledger: .save(record: record, lease: lease), step: .call(action))
    }

    /// Writes the outcome and frees the record.
    func end(
        _ status: DefectCommand.Status, _ messages: [String], _ state: CommandState, record: String? = nil,
        choices: [String: [String]]? = nil, detail: DefectDetail? = nil
    ) -> CommandDecision {
        var decision = CommandDecision(ledger: state.attempt == nil ? .unchanged : .remove, step: .finished)
        if case .live(let command) = state.command, command.status == .waiting {
            decision.outcome = CommandDecision.Outcome(
                status: status, messages: messages, record: record, choices: choices, detail: detail)
        }
        return decision
    }

    func retryWait(_ attemptCount: Int) -> Duration { min(retryMin * (1 << min(attemptCount, 16)), retryMax) }
}

extension DefectCommand {
    /// The existing record that the command edits or deletes; `nil` for a new record, and for a read without an edit
    /// session.
    var existingRecord: String? {
        switch operation {
        case .create, .read, .queries, .runQuery: nil
        case .modify, .changeState, .delete: record
        case .choices, .form: record.flatMap { $0.isEmpty ? nil : $0 }
        }
    }

    /// The existing record whose earlier commands of the person come first.
    var orderedRecord: String? { operation == .read ? record : existingRecord }

    /// The command's read without an edit session; `nil` for any other command.
    var detailRequest: DetailRequest? {
        switch operation {
        case .read: .record(record ?? "")
        case .queries: .folder(folder.flatMap { $0.isEmpty ? nil : $0 })
        case .runQuery: .rows(query: query ?? "", first: fromRow ?? 0)
        case .create, .modify, .changeState, .delete, .choices, .form: nil
        }
    }
}
