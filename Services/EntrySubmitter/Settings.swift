import KeyedWorker
import ServiceSettings

/// What `entry-submitter` can be told, beside what all services can.
enum Settings {
    static let inFlightMax = Setting(
        "submitter.inflight.max", .integer(1...1_024), default: "64",
        help: "calls to one back end under way at a time, per worker")
    static let settleMin = Setting(
        "submitter.settle.min", .duration(.milliseconds(100) ... .seconds(3_600)), default: "30s",
        help: "how long a call of unknown outcome waits before the back end is asked; must be longer "
            + "than the back end may commit late")
    static let retryMin = Setting(
        "submitter.retry.min", .duration(.milliseconds(10) ... .seconds(600)), default: "1s",
        help:
            "the first wait after a back end that could not work; it doubles. Twice as long is the first wait between "
            + "two probes of a back end that is away")
    static let retryMax = Setting(
        "submitter.retry.max", .duration(.milliseconds(10) ... .seconds(3_600)), default: "60s",
        help: "the longest such wait, of a key and between two probes")
    static let attemptsMax = Setting(
        "submitter.attempts.max", .integer(1...1_000), default: "20",
        help:
            "tries of an entry before it waits for a person; while the back end answers nobody, half of them are used "
            + "up at most")

    static let all = Setting.callingWorker + [inFlightMax, settleMin, retryMin, retryMax, attemptsMax]

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
