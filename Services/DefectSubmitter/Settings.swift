import KeyedWorker
import ServiceSettings

/// The settings of `defect-submitter`, in addition to those of all services.
enum Settings {
    static let inFlightMax = Setting(
        "defects.inflight.max", .integer(1...1_024), default: "64",
        help: "concurrent commands of one tracker, per worker")
    static let settleMin = Setting(
        "defects.settle.min", .duration(.milliseconds(100) ... .seconds(3_600)), default: "30s",
        help: "delay before an unknown outcome is checked; must be longer than a save may be late")
    static let retryMin = Setting(
        "defects.retry.min", .duration(.milliseconds(10) ... .seconds(600)), default: "1s",
        help: "first delay of the exponential backoff while a tracker is unavailable")
    static let retryMax = Setting(
        "defects.retry.max", .duration(.milliseconds(10) ... .seconds(3_600)), default: "60s",
        help: "maximum delay of that backoff, for a command and between two probes")
    static let attemptsMax = Setting(
        "defects.attempts.max", .integer(2...1_000), default: "20",
        help: "attempts before a command fails or its outcome stays unknown")

    static let all = Setting.callingWorker + [inFlightMax, settleMin, retryMin, retryMax, attemptsMax]

    /// Limits of tracker calls within one edit session, which is one call of the worker: how many may be sent one after
    /// another before the deadline, and how many may still be in progress at the deadline.
    static let leaseCallsMax = (sending: 6, ending: 3)

    static func rule(_ configuration: Configuration) throws -> CommandRule {
        let callMax = try configuration.duration(.backendCallMax)
        return CommandRule(
            lease: callMax * (leaseCallsMax.sending + leaseCallsMax.ending),
            settleMin: try configuration.duration(settleMin), retryMin: try configuration.duration(retryMin),
            retryMax: try configuration.duration(retryMax), attemptsMax: try configuration.integer(attemptsMax))
    }

    static func limits(_ configuration: Configuration) throws -> WorkerLimits {
        var limits = WorkerLimits()
        limits.inFlightMax = try configuration.integer(inFlightMax)
        limits.keysInFlightMax = max(limits.keysInFlightMax, limits.inFlightMax * 8)
        // A command ends before its key would be dead-lettered.
        limits.attemptsMax = try configuration.integer(attemptsMax) + 1
        let (retryMin, retryMax) = (try configuration.duration(retryMin), try configuration.duration(retryMax))
        limits.circuit = CircuitBreaker(waitMin: min(retryMin * 2, retryMax), waitMax: retryMax)
        limits.dueInterval = min(limits.dueInterval, max(retryMax / 4, .milliseconds(10)))
        return limits
    }
}
