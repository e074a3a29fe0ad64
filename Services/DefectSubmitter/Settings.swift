import KeyedWorker
import ServiceSettings

/// What `defect-submitter` can be told, beside what all services can.
enum Settings {
    static let inFlightMax = Setting(
        "defects.inflight.max", .integer(1...1_024), default: "64",
        help: "commands of one tracker under way at a time, per worker")
    static let settleMin = Setting(
        "defects.settle.min", .duration(.milliseconds(100) ... .seconds(3_600)), default: "30s",
        help:
            "how long a command of unknown outcome waits before the tracker is asked; must be longer than the tracker "
            + "may save late")
    static let retryMin = Setting(
        "defects.retry.min", .duration(.milliseconds(10) ... .seconds(600)), default: "1s",
        help: "the first wait after a tracker that could not work; it doubles")
    static let retryMax = Setting(
        "defects.retry.max", .duration(.milliseconds(10) ... .seconds(3_600)), default: "60s",
        help: "the longest such wait, of a command and between two probes")
    static let attemptsMax = Setting(
        "defects.attempts.max", .integer(2...1_000), default: "20",
        help: "tries of a command before it ends without having been done, or without anybody knowing")

    static let all = Setting.callingWorker + [inFlightMax, settleMin, retryMin, retryMax, attemptsMax]

    /// A call of the worker is an edit session: so many calls of the tracker can be made one after the other before
    /// nothing is begun any more, and so many may be under way still when that is so.
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
        limits.heldMax = max(limits.heldMax, limits.inFlightMax * 8)
        // A command ends by itself before it would wait for a person.
        limits.attemptsMax = try configuration.integer(attemptsMax) + 1
        let (retryMin, retryMax) = (try configuration.duration(retryMin), try configuration.duration(retryMax))
        limits.circuit = CircuitBreaker(waitMin: min(retryMin * 2, retryMax), waitMax: retryMax)
        limits.dueInterval = min(limits.dueInterval, max(retryMax / 4, .milliseconds(10)))
        return limits
    }
}
