import Essentials
import KeyedWorker
import Model

/// What an answer of the tracker means.
extension CommandRule {
    func hear(_ answer: CommandAnswer, _ state: CommandState, _ attemptCount: Int) -> CommandDecision {
        guard let attempt = state.attempt else { return decide(state, .look, attemptCount: attemptCount) }
        switch answer {
        case .begun(let record, let mandatory): return begun(record, mandatory, state)
        case .done(let record): return end(.done, [], state, record: record)
        case .choices(let choices, let messages): return end(.done, messages, state, choices: choices)
        case .refused(let messages):
            // What the tracker does not say cannot be shown: then at least that it refused.
            return end(.refused, messages.isEmpty ? ["The tracker refuses it without a reason"] : messages, state)
        case .conflict(let messages): return end(.conflict, messages, state)
        case .unclear(let messages): return end(.unknown, messages, state)
        case .reverted: return end(.unknown, [], state)
        case .overtaken:
            return later(
                "somebody else changed the record meanwhile", isUncertain: false, cause: .attempt, state, attemptCount)
        case .neverSaved: return beginAnew(state)
        case .notProcessed(let reason, let retryAfter):
            return later(reason, retryAfter, isUncertain: false, state, attemptCount)
        case .unknown(let reason, let retryAfter):
            return later(reason, retryAfter, isUncertain: true, state, attemptCount)
        case .unauthorized(let reason, let isUncertain):
            return refuseLogin(reason, isUncertain: isUncertain && state.mayBeSaved, state)
        case .notMade(let isUncertain):
            return CommandDecision(
                ledger: isUncertain ? .keep(record: attempt.record, lease: .zero) : .forget,
                step: .park(reason: ParkCause.noRoom, after: retryMin, cause: .planned))
        }
    }

    /// The new record's id is written down before anything can be saved under it.
    private func begun(_ record: String, _ mandatory: [String: String], _ state: CommandState) -> CommandDecision {
        guard case .live(let command) = state.command else { return call(.revert(record: record), record: record) }
        guard state.canCall else {
            return CommandDecision(ledger: .keep(record: record, lease: .zero), step: .again)
        }
        return call(
            .carryOut(command, record: record, isNew: true, isUncertain: false, mandatory: mandatory), record: record)
    }

    private func beginAnew(_ state: CommandState) -> CommandDecision {
        guard case .live(let command) = state.command else { return end(.unknown, [], state) }
        guard state.canCall else { return CommandDecision(ledger: .keep(record: nil, lease: .zero), step: .again) }
        return call(.begin(command), record: nil)
    }

    /// It is tried again, a bounded number of times: then it ends, as far as that is known.
    private func later(
        _ reason: String, _ retryAfter: Duration? = nil, isUncertain: Bool, cause: ParkCause? = nil,
        _ state: CommandState, _ attemptCount: Int
    ) -> CommandDecision {
        let mayBeOpen = isUncertain && state.attempt?.record != nil
        let mayBeSaved = mayBeOpen && state.mayBeSaved
        guard attemptCount + 1 < attemptsMax else {
            guard mayBeSaved else { return end(.refused, ["It could not be done: \(reason)"], state) }
            return end(.unknown, ["Whether it was done cannot be found out: \(reason)"], state)
        }
        let wait = max(mayBeOpen ? settleMin : retryWait(attemptCount), retryAfter ?? .zero)
        return CommandDecision(
            ledger: mayBeOpen ? .keep(record: state.attempt?.record, lease: settleMin) : .forget,
            step: .park(reason: reason, after: wait, cause: cause ?? .away(askingFor: retryAfter)))
    }

    private func refuseLogin(_ reason: String, isUncertain: Bool, _ state: CommandState) -> CommandDecision {
        let message = "HCL Compass does not accept your login: \(reason)"
        var decision =
            isUncertain
            ? end(.unknown, ["Whether it was done cannot be found out: \(message)"], state)
            : end(.refused, [message], state)
        decision.loginRefused = reason
        return decision
    }
}
