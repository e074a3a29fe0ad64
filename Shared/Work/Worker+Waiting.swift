import Essentials
import Kafka
import Logging
import Postgres
import Realms
import Runtime

/// Waiting while something is away.
extension Worker {
    mutating func pause() throws {
        try consumer.pauseAll()
        isPaused = true
    }

    mutating func resume() throws {
        guard isPaused else { return }
        try consumer.resumeAll()
        isPaused = false
    }

    /// The round is done again, after a wait that grows.
    ///
    /// - Returns: `reason`.
    mutating func failed(_ reason: String, level: Logger.Level = .warning) -> String {
        // Once: readiness tells it as long as it lasts.
        if away == nil { logger.log(level: level, "cannot go on, trying again", metadata: ["reason": "\(reason)"]) }
        away = Away(reason: reason, until: .now + backoff.failed(random: Double.random(in: 0..<1)))
        missed.forEach { item in
            let isPending = queued.contains {
                $0.input.subject == item.input.subject && $0.input.environment == item.input.environment
            }
            if !isPending { queued.append(item) }
        }
        missed = []
        if !isPaused { try? pause() }
        return reason
    }

    /// Keeps polling while the wait lasts, so that the group does not notice. Whatever wakes the loop (librdkafka,
    /// answers of calls, the process's end) ends this poll, and does not shorten the wait.
    ///
    /// - Returns: Why it waits; `nil` when there is nothing to wait for, or no longer.
    mutating func waitWhileAway() throws -> String? {
        guard let away, away.until > .now else { return nil }
        let left = away.until - ContinuousClock.now
        taken += try consumer.nextBatch(countMax: limits.batchCountMax, waitMax: min(left, .seconds(1)))
        return away.reason
    }
}

/// Whether a worker that failed like that would do so again, until a person has acted: the database's schema is not
/// the program's, or librdkafka refuses its configuration. For `Component.worker`.
@Sendable package func isFinal(_ error: any Error) -> Bool {
    error is SchemaMismatch || (error as? KafkaError)?.isInvalidArgument == true
}
