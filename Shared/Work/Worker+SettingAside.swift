import Essentials
import Logging
import Metrics
import Model
import Postgres
import Runtime

/// Setting an environment aside in which somebody holds a lock: the others go on.
///
/// Its events and retries are parked, which needs none of its locks; answers of calls stay with the worker until they
/// can be recorded. It is tried again after waits that grow.
extension Worker {
    /// How long a statement of a worker waits for a lock. Then its environment is set aside.
    static var lockMax: Duration { .milliseconds(250) }

    struct SetAside {
        fileprivate var backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(5))
        fileprivate(set) var until = ContinuousClock.now
    }

    func isSetAside(_ environment: EnvironmentID) -> Bool { setAside[environment].map { $0.until > .now } ?? false }

    /// Whether this is an answer that cannot be recorded now.
    func waits(_ item: Queued) -> Bool {
        item.input.isAnswer && isSetAside(item.input.environment)
    }

    /// A stopping worker does not wait for somebody else's lock: what cannot be recorded comes again to the next one.
    var isOnlySetAsideLeft: Bool {
        !setAside.isEmpty && calls.underWayCount == 0 && inFlight.keys.allSatisfy { isSetAside($0.environment) }
            && queued.allSatisfy { waits($0) }
    }

    mutating func setAside(_ environment: EnvironmentID, _ error: PostgresError) {
        var entry = setAside[environment] ?? SetAside()
        entry.until = .now + entry.backoff.failed(random: .random(in: 0.5..<1))
        if setAside.updateValue(entry, forKey: environment) == nil {
            logger.warning(
                "an environment is locked by somebody, its keys wait",
                metadata: ["environment": "\(environment)", "reason": "\(error)"])
        }
    }

    mutating func isFree(_ environment: EnvironmentID) {
        guard setAside.removeValue(forKey: environment) != nil else { return }
        logger.notice("an environment is no longer locked", metadata: ["environment": "\(environment)"])
    }

    /// Puts the keys of an environment that is set aside down in PostgreSQL, and lets go of them.
    mutating func parkSetAside(_ environment: EnvironmentID) throws {
        let items = queued.filter { $0.input.environment == environment && !waits($0) }
        let wait = setAside[environment].map { $0.until - .now } ?? .zero
        let parkings = items.map { item in
            ParkedKeys.Parking(
                subject: item.input.subject, partition: item.partition, reason: "the environment is locked by somebody",
                isDead: false, isCircuit: false, attemptCount: item.input.attemptCount, wait: max(wait, .zero),
                decision: 0)
        }
        try connection.run(ParkedKeys.park(parkings, group: group, environment: environment))
        parkedCounter.increment(by: parkings.count)
        letGo(items, in: environment)
    }
}
