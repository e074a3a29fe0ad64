import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore

/// Checks people's own logins after they are stored.
extension CommandHandler {
    func decideLogin(_ context: DecisionContext, _ snapshot: CommandSnapshot, _ writes: inout CommandWrites) throws
        -> Disposition<Call>
    {
        guard let object = snapshot.objects[context.key],
            let account = try object.decoded(as: DefectAccount.self, by: decoder), account.status == .unchecked
        else { return .finished }
        if let rejection = snapshot.loginRejection(of: context.key.realm) {
            writes.updateAccount(.refused, rejection, of: object, context.decision)
            return .finished
        }
        // The position changes when another login is stored.
        guard case .result(.login(let result, let position)) = context.input.origin, position == object.position else {
            let deadline = context.started + callMax * Settings.leaseCallsMax.sending
            return .call(
                Call(
                    request: .login(position: object.position),
                    tracker: try snapshot.tracker(of: context.key.realm, trackers), deadline: WriteDeadline(deadline)),
                startBefore: deadline)
        }
        switch result {
        case .success: writes.updateAccount(.good, nil, of: object, context.decision)
        case .failure(.unauthorized(let reason)): writes.updateAccount(.refused, reason, of: object, context.decision)
        case .failure(.refused(let messages)):
            writes.updateAccount(.refused, messages.joined(separator: "; "), of: object, context.decision)
        case .failure(.notProcessed(let reason, let retryAfter)),
            .failure(.outcomeUnknown(let reason, let retryAfter)):
            if context.input.attemptCount + 1 >= rule.attemptsMax {
                // The check is retried without limit: no other event reports the status of the login.
                let message = "HCL Compass could not check the login: \(reason)"
                if account.reason != message { writes.updateAccount(.unchecked, message, of: object, context.decision) }
                return .deferred(reason: reason, after: rule.retryMax, cause: .planned)
            }
            let wait = max(rule.retryWait(context.input.attemptCount), retryAfter ?? .zero)
            return .deferred(reason: reason, after: wait, cause: .unavailable(retryAfter: retryAfter))
        case .failure(.deadlineExceeded):
            return .deferred(reason: DeferralCause.noFreeSlot, after: rule.retryMin, cause: .planned)
        }
        return .finished
    }
}
