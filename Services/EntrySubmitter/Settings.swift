import Runtime
import Work

/// What `entry-submitter` can be told, beside what all services can.
enum Settings {
    static let inFlightMax = Setting(
        "submitter.inflight.max", .integer(1...1_024), default: "64",
        help: "Calls to one back end under way at a time, per worker")
    static let callMax = Setting(
        "backend.call.max", .duration(.milliseconds(100)...(.seconds(120))), default: "10s",
        help: "The longest a single HTTP call to a back end may take")
    static let settleMin = Setting(
        "submitter.settle.min", .duration(.milliseconds(100)...(.seconds(3_600))), default: "30s",
        help: "How long a call of unknown outcome waits before the back end is asked; longer than it may commit late")
    static let retryMin = Setting(
        "submitter.retry.min", .duration(.milliseconds(10)...(.seconds(600))), default: "1s",
        help: "The first wait after a back end that could not work")
    static let retryMax = Setting(
        "submitter.retry.max", .duration(.milliseconds(10)...(.seconds(3_600))), default: "60s",
        help: "The longest such wait")
    static let attemptsMax = Setting(
        "submitter.attempts.max", .integer(1...1_000), default: "20",
        help: "Tries of an entry before it waits for a person")

    static let all: [Setting] = [
        .databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount, .secretKeys, inFlightMax, callMax, settleMin,
        retryMin, retryMax, attemptsMax,
    ]

    static func limits(_ configuration: Configuration) throws -> WorkerLimits {
        var limits = WorkerLimits()
        limits.inFlightMax = try configuration.integer(inFlightMax)
        limits.heldMax = max(limits.heldMax, limits.inFlightMax * 8)
        limits.attemptsMax = try configuration.integer(attemptsMax)
        let (retryMin, retryMax) = (try configuration.duration(retryMin), try configuration.duration(retryMax))
        limits.circuit = CircuitBreaker(waitMin: min(retryMin * 2, retryMax), waitMax: retryMax)
        limits.dueInterval = min(limits.dueInterval, max(retryMax / 4, .milliseconds(10)))
        return limits
    }
}
