import Essentials
import Model

/// Environments whose counter another transaction has locked. Others are not delayed.
///
/// Their events and retries are deferred, which needs no lock of the environment. Results of calls stay with the worker
/// until they can be recorded. The environment is retried with exponential backoff.
extension WorkScheduler {
    struct LockBackoff: Sendable {
        fileprivate var backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(5))
        fileprivate(set) var until: ContinuousClock.Instant
    }

    func isLocked(_ environment: EnvironmentID, now: ContinuousClock.Instant) -> Bool {
        lockedEnvironments[environment].map { $0.until > now } ?? false
    }

    /// Whether the item is a result that cannot be recorded now.
    func isBlocked(_ item: Item, now: ContinuousClock.Instant) -> Bool {
        item.item.isAnswer && isLocked(item.item.environment, now: now)
    }

    /// The current batch cannot be written: another transaction holds a lock in the environment.
    ///
    /// - Parameter random: From 0 up to 1.
    mutating func locked(_ reason: String, now: ContinuousClock.Instant, random: Double) {
        guard let environment = deciding.first?.item.environment else { return }
        var entry = lockedEnvironments[environment] ?? LockBackoff(until: now)
        entry.until = now + entry.backoff.failed(random: 0.5 + random / 2)
        if lockedEnvironments.updateValue(entry, forKey: environment) == nil {
            logEvents.append(.locked(environment, reason: reason))
        }
        requeueBatch()
    }

    mutating func unlocked(_ environment: EnvironmentID) {
        guard lockedEnvironments.removeValue(forKey: environment) != nil else { return }
        logEvents.append(.unlocked(environment))
    }

    func deferrals(
        locked items: [Item], in environment: EnvironmentID, now: ContinuousClock.Instant
    ) -> [DeferredKeys.Deferral] {
        let wait = lockedEnvironments[environment].map { $0.until - now } ?? .zero
        let denial = CallDenial(reason: "the environment is locked", wait: max(wait, .zero), isCircuit: false)
        return items.map { deferral($0, denial, decision: 0) }
    }
}
