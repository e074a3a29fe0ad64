import KeyedWorker
import ServiceSettings

/// Settings of `entry-submitter` in addition to those of all services.
enum Settings {
    static let inFlightMax = Setting(
        "submitter.inflight.max", .integer(1...1_024), default: "64",
        help: "maximum concurrent calls to one back end, per worker")
    static let settleMin = Setting(
        "submitter.settle.min", .duration(.milliseconds(100) ... .seconds(3_600)), default: "30s",
        help: "delay before a call with an unknown outcome is looked up; must be longer than the back end "
            + "may take to commit")
    static let retryMin = Setting(
        "submitter.retry.min", .duration(.milliseconds(10) ... .seconds(600)), default: "1s",
        help:
            "first delay of the exponential backoff after a failure of the back end; twice as long is the first delay "
            + "between two probes of an unavailable back end")
    static let retryMax = Setting(
        "submitter.retry.max", .duration(.milliseconds(10) ... .seconds(3_600)), default: "60s",
        help: "maximum delay of a retry, and between two probes")
    static let attemptsMax = Setting(
        "submitter.attempts.max", .integer(1...1_000), default: "20",
        help:
            "maximum attempts of an entry before its key is dead-lettered; while the back end fails for all keys, at "
            + "most half of them are used")

    static let all = Setting.callingWorker + [inFlightMax, settleMin, retryMin, retryMax, attemptsMax]

    static func limits(_ configuration: Configuration) throws -> WorkerLimits {
        var limits = WorkerLimits()
        limits.inFlightMax = try configuration.integer(inFlightMax)
        limits.keysInFlightMax = max(limits.keysInFlightMax, limits.inFlightMax * 8)
        limits.attemptsMax = try configuration.integer(attemptsMax)
        let (retryMin, retryMax) = (try configuration.duration(retryMin), try configuration.duration(retryMax))
        limits.circuit = CircuitBreaker(waitMin: min(retryMin * 2, retryMax), waitMax: retryMax)
        limits.dueInterval = min(limits.dueInterval, max(retryMax / 4, .milliseconds(10)))
        return limits
    }
}
