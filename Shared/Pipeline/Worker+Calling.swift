import Kafka
import Logging
import Metrics
import Model
import Postgres
import Realms

/// The window of calls.
extension Worker {
    /// Queues a call whose ledger is written. `decideTogether` has found its environment's caller.
    mutating func make(_ call: H.Call, for key: Key, startBefore: ContinuousClock.Instant) {
        guard let make = callers[key.environment]?.make else { preconditionFailure("the caller is found before") }
        calls.add(CallWindow.Call(key: key, startBefore: startBefore) { await make(call) })
    }

    /// When the calls that were decided cannot be made, takes those decisions out of the batch: their keys wait.
    ///
    /// - Returns: The decisions taken out.
    mutating func withdrawCalls(
        _ nexts: inout [Next<H.Call>], from batch: inout WriteBatch, in environment: EnvironmentID
    ) throws -> Set<Int> {
        let calls = nexts.indices.filter { nexts[$0].isCall }
        guard !calls.isEmpty, let reason = try findCaller(of: environment) else { return [] }
        batch.expect("SELECT realm.miss(\(calls.map(Int32.init)))")
        for index in calls {
            nexts[index] = .park(reason: reason, after: limits.circuit.waitMin, cause: .backendAway)
        }
        return Set(calls)
    }

    /// Finds how the environment's calls are made: what was found a while ago may have been changed by a person since.
    ///
    /// - Returns: `nil`, or why they cannot be made.
    private mutating func findCaller(of environment: EnvironmentID) throws -> String? {
        if let kept = callers[environment], ContinuousClock.now - kept.madeAt < limits.callerAgeMax { return nil }
        do {
            callers[environment] = Caller(
                make: try handler.caller(on: &connection, for: environment), madeAt: .now)
            unavailable[environment] = nil
            return nil
        } catch let error as CallerUnavailable {
            if unavailable[environment] != error.reason {
                logger.error(
                    "the back end cannot be called, its keys wait",
                    metadata: ["environment": "\(environment)", "reason": "\(error.reason)"])
            }
            callers[environment] = nil
            unavailable[environment] = error.reason
            return error.reason
        }
    }

    /// It waited for its call for so long that its lease may be over.
    mutating func decideAgain(_ key: Key) {
        guard let entry = held[key] else { return }
        if probes[key.environment] == key { breakers[key.environment]?.probeWasNotMade(now: .now) }
        pending.append(
            Pending(
                input: Input(
                    environment: key.environment, subject: key.subject, origin: .retry, attemptCount: entry.attemptCount
                ),
                partition: entry.partition))
    }
}
