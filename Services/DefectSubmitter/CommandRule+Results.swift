import Essentials
import KeyedWorker
import Model

/// Processes results of tracker calls.
extension CommandRule {
    func handle(_ result: ActionResult, _ state: CommandState, _ attemptCount: Int) -> CommandDecision {
        guard let attempt = state.attempt else { return decide(state, .event, attemptCount: attemptCount) }
        switch result {
        case .opened(let record, let session):
            // The new record's id is saved before anything can be committed under it.
            guard case .live(let command) = state.command else { return call(.revert(record: record), record: record) }
            guard state.canCall else {
                return CommandDecision(ledger: .save(record: record, lease: .zero), step: .reprocess)
            }
            return call(
                .perform(command, record: record, isNew: true, isUncertain: false, session: session), record: record)
        case .done(let record): return end(.done, [], state, record: record)
        case .choices(let choices, let messages): return end(.done, messages, state, choices: choices)
        case .detail(let detail, let messages): return end(.done, messages, state, detail: detail)
        case .refused(let messages):
            // Without a message of the tracker, the status has at least this one.
            return end(
                .refused, messages.isEmpty ? ["HCL Compass rejected the command without a reason"] : messages, state)
        case .conflict(let messages, let detail): return end(.conflict, messages, state, detail: detail)
        case .ambiguous(let messages): return end(.unknown, messages, state)
        case .reverted: return end(.unknown, [], state)
        case .concurrentCommit:
            return retry("another user changed the record", isUncertain: false, cause: .attempt, state, attemptCount)
        case .neverSaved: return restart(state)
        case .notProcessed(let reason, let retryAfter):
            return retry(reason, retryAfter, isUncertain: false, state, attemptCount)
        case .unknown(let reason, let retryAfter):
            return retry(reason, retryAfter, isUncertain: true, state, attemptCount)
        case .unauthorized(let reason, let isUncertain):
            return rejectLogin(reason, isUncertain: isUncertain && state.mayBeSaved, state)
        case .notSent(let isUncertain):
            return CommandDecision(
                ledger: isUncertain ? .save(record: attempt.record, lease: .zero) : .remove,
                step: .deferred(reason: DeferralCause.noFreeSlot, after: retryMin, cause: .planned))
        }
    }

    private func restart(_ state: CommandState) -> CommandDecision {
        guard case .live(let command) = state.command else { return end(.unknown, [], state) }
        guard state.canCall else { return CommandDecision(ledger: .save(record: nil, lease: .zero), step: .reprocess) }
        return call(.openNew(command), record: nil)
    }

    /// Retries up to `attemptsMax` times, and then ends the command as failed or unknown.
    private func retry(
        _ reason: String, _ retryAfter: Duration? = nil, isUncertain: Bool, cause: DeferralCause? = nil,
        _ state: CommandState, _ attemptCount: Int
    ) -> CommandDecision {
        let mayBeOpen = isUncertain && state.attempt?.record != nil
        let mayBeSaved = mayBeOpen && state.mayBeSaved
        guard attemptCount + 1 < attemptsMax else {
            guard mayBeSaved else { return end(.refused, ["The command failed: \(reason)"], state) }
            return end(.unknown, ["The outcome is unknown: \(reason)"], state)
        }
        let wait = max(mayBeOpen ? settleMin : retryWait(attemptCount), retryAfter ?? .zero)
        return CommandDecision(
            ledger: mayBeOpen ? .save(record: state.attempt?.record, lease: settleMin) : .remove,
            step: .deferred(reason: reason, after: wait, cause: cause ?? .unavailable(retryAfter: retryAfter)))
    }

    private func rejectLogin(_ reason: String, isUncertain: Bool, _ state: CommandState) -> CommandDecision {
        let message = "HCL Compass rejects your login: \(reason)"
        var decision =
            isUncertain
            ? end(.unknown, ["The outcome is unknown: \(message)"], state)
            : end(.refused, [message], state)
        decision.loginRejection = reason
        return decision
    }
}
