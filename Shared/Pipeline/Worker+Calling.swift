import Kafka
import Logging
import Metrics
import Model

/// The window of calls, and waiting while something is away.
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

    mutating func pause() throws {
        try consumer.pauseAll()
        isPaused = true
    }

    mutating func resume() throws {
        guard isPaused else { return }
        try consumer.resumeAll()
        isPaused = false
    }

    /// Backs off with jitter, and keeps polling meanwhile: the group must not notice.
    mutating func waitAfterFailure(_ reason: String) throws {
        failureCount += 1
        // Once: readiness tells it as long as it lasts.
        if failureCount == 1 { logger.warning("cannot go on, trying again", metadata: ["reason": "\(reason)"]) }
        missed.forEach { item in
            let isPending = pending.contains {
                $0.input.subject == item.input.subject && $0.input.environment == item.input.environment
            }
            if !isPending { pending.append(item) }
        }
        missed = []
        if !isPaused { try? pause() }
        let grown = Duration.milliseconds(50) * (1 << min(failureCount, 6))
        consumer.wakeup.wait(atMost: grown * Double.random(in: 0.5...1))
        taken += try consumer.nextBatch(countMax: limits.batchCountMax, waitMax: .zero)
    }
}
