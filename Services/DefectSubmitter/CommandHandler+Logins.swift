import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore

/// People's own logins, which are checked when they are stored.
extension CommandHandler {
    func decideLogin(_ turn: Turn, _ loaded: Loaded, _ writes: inout CommandWrites) throws -> Disposition<Call> {
        guard let object = loaded.objects[turn.key],
            let account = try object.decoded(as: DefectAccount.self, by: decoder), account.status == .unchecked
        else { return .finished }
        if let objection = loaded.objectionToLogin(of: turn.key.realm) {
            writes.tell(.refused, objection, of: object, turn.decision)
            return .finished
        }
        // Another login than the one that was tried is another position.
        guard case .answer(.login(let result, let position)) = turn.input.origin, position == object.position else {
            let deadline = turn.started + callMax * Settings.leaseCallsMax.sending
            return .call(
                Call(
                    work: .login(position: object.position),
                    tracker: try loaded.tracker(of: turn.key.realm, trackers), deadline: WriteDeadline(deadline)),
                startBefore: deadline)
        }
        switch result {
        case .success: writes.tell(.good, nil, of: object, turn.decision)
        case .failure(.unauthorized(let reason)): writes.tell(.refused, reason, of: object, turn.decision)
        case .failure(.refused(let messages)):
            writes.tell(.refused, messages.joined(separator: "; "), of: object, turn.decision)
        case .failure(.notProcessed(let reason, let retryAfter)),
            .failure(.outcomeUnknown(let reason, let retryAfter)):
            if turn.input.attemptCount + 1 >= rule.attemptsMax {
                // It is never given up: then nobody would say what is known of the login.
                let told = "HCL Compass could not be asked: \(reason)"
                if account.reason != told { writes.tell(.unchecked, told, of: object, turn.decision) }
                return .park(reason: reason, after: rule.retryMax, cause: .planned)
            }
            let wait = max(rule.retryWait(turn.input.attemptCount), retryAfter ?? .zero)
            return .park(reason: reason, after: wait, cause: .away(askingFor: retryAfter))
        case .failure(.tooLate):
            return .park(reason: ParkCause.noRoom, after: rule.retryMin, cause: .planned)
        }
        return .finished
    }
}
