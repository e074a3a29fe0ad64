import Kafka
import Logging
import Metrics
import Model

/// The window of calls.
extension Worker {
    /// Queues a call whose ledger is written. `decideTogether` has found its environment's caller.
    mutating func make(_ call: H.Call, for key: Key, startBefore: ContinuousClock.Instant) {
        guard let make = callers[key.environment] else { preconditionFailure("the caller is found before") }
        calls.add(CallWindow.Call(key: key, startBefore: startBefore) { await make(call) })
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
