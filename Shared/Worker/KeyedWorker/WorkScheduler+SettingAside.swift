import Essentials
import Model

/// Setting an environment aside in which somebody holds a lock: the others go on.
///
/// Its events and retries are parked, which needs none of its locks; answers of calls stay with the worker until they
/// can be recorded. It is tried again after waits that grow.
extension WorkScheduler {
    struct SetAside: Sendable {
        fileprivate var backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(5))
        fileprivate(set) var until: ContinuousClock.Instant
    }

    func isSetAside(_ environment: EnvironmentID, now: ContinuousClock.Instant) -> Bool {
        setAside[environment].map { $0.until > now } ?? false
    }

    /// Whether this is an answer that cannot be recorded now.
    func waits(_ item: Item, now: ContinuousClock.Instant) -> Bool {
        item.item.isAnswer && isSetAside(item.item.environment, now: now)
    }

    /// What is being decided cannot be written: somebody holds a lock in the environment.
    ///
    /// - Parameter random: From 0 up to 1.
    mutating func locked(_ reason: String, now: ContinuousClock.Instant, random: Double) {
        guard let environment = deciding.first?.item.environment else { return }
        var entry = setAside[environment] ?? SetAside(until: now)
        entry.until = now + entry.backoff.failed(random: 0.5 + random / 2)
        if setAside.updateValue(entry, forKey: environment) == nil {
            notes.append(.locked(environment, reason: reason))
        }
        putBack()
    }

    mutating func unlocked(_ environment: EnvironmentID) {
        guard setAside.removeValue(forKey: environment) != nil else { return }
        notes.append(.unlocked(environment))
    }

    func parkings(
        setAside items: [Item], in environment: EnvironmentID, now: ContinuousClock.Instant
    ) -> [ParkedKeys.Parking] {
        let wait = setAside[environment].map { $0.until - now } ?? .zero
        return items.map { item in
            ParkedKeys.Parking(
                subject: item.item.subject, partition: item.partition, reason: "the environment is locked by somebody",
                isDead: false, isCircuit: false, attemptCount: item.item.attemptCount, wait: max(wait, .zero),
                decision: 0, trace: item.item.trace)
        }
    }
}
