import Essentials
import Model

/// Environments whose counter another transaction has locked. Others are not delayed.
///
/// The environment is retried with exponential backoff. Its events and retries wait, in their order. If the lock lasts,
/// or many events of locked environments wait, they are deferred, which needs no lock. Results of calls stay with the
/// worker until they can be recorded.
extension WorkScheduler {
    struct LockBackoff: Sendable {
        fileprivate var backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(5))
        fileprivate let since: ContinuousClock.Instant
        fileprivate(set) var until: ContinuousClock.Instant
        fileprivate var isReported = false
    }

    /// Time after which a lock is a problem. Shorter ones are normal while many services write.
    private static var lockedMax: Duration { .seconds(10) }
    /// Maximum time for which events wait for a lock. Deferred events come after all keys that are already due.
    private static var lockWaitMax: Duration { .seconds(1) }

    func isLocked(_ environment: EnvironmentID, now: ContinuousClock.Instant) -> Bool {
        lockedEnvironments[environment].map { $0.until > now } ?? false
    }

    /// Whether the item is a result that cannot be recorded now.
    func isBlocked(_ item: Item, now: ContinuousClock.Instant) -> Bool {
        item.item.isAnswer && isLocked(item.item.environment, now: now)
    }

    /// Whether the events of a locked environment wait, as those of other locked environments do. A stopping worker
    /// defers them: otherwise the next one would have to wait for their leases, and read all messages after them again.
    func isWaiting(_ environment: EnvironmentID, now: ContinuousClock.Instant) -> Bool {
        guard !isStopping, let lock = lockedEnvironments[environment], lock.until > now,
            now - lock.since < Self.lockWaitMax
        else { return false }
        let counts = lockedEnvironments.keys.lazy.filter { isLocked($0, now: now) }.map { locked in
            queues[locked]?.count { !$0.item.isAnswer } ?? 0
        }
        return counts.reduce(0, +) <= limits.batchCountMax
    }

    /// The current batch cannot be written: another transaction holds a lock in the environment.
    ///
    /// - Parameter random: From 0 up to 1.
    mutating func locked(_ reason: String, now: ContinuousClock.Instant, random: Double) {
        guard let environment = deciding.first?.item.environment else { return }
        // An entry that was not retried for long belongs to an earlier lock.
        let before = lockedEnvironments[environment].flatMap { now - $0.until < Self.lockedMax ? $0 : nil }
        var entry = before ?? LockBackoff(since: now, until: now)
        entry.until = now + entry.backoff.failed(random: 0.5 + random / 2)
        let duration = now - entry.since
        if before == nil || duration >= Self.lockedMax && !entry.isReported {
            logEvents.append(.locked(environment, reason: reason, isLong: duration >= Self.lockedMax))
        }
        entry.isReported = duration >= Self.lockedMax
        lockedEnvironments[environment] = entry
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
