import Model
import ObjectStore
import Postgres

/// Schedules the compaction of environments.
struct Compactor {
    /// Maximum number of pointers removed per step.
    private static let countMax = 2_000
    /// The pause between two steps, which leaves time for publishing.
    private static let pause = Duration.milliseconds(50)
    /// The number of consecutive steps with a lock held by others after which an environment is skipped until the next
    /// interval.
    private static let lockedMax = 20

    private var waiting: [(environment: EnvironmentID, lockedCount: Int)] = []
    /// The time of the next step.
    private(set) var next = ContinuousClock.now

    /// Performs a limited step if one is due, so that each environment with removable data is compacted once per
    /// `interval`. Does not wait for locks.
    mutating func step(keep: Duration, interval: Duration, on connection: inout Connection) throws {
        guard ContinuousClock.now >= next else { return }
        if waiting.isEmpty {
            waiting = try connection.run(Compaction.due(keep: keep)).decode(EnvironmentID.self).map { ($0, 0) }
            next = waiting.isEmpty ? .now + interval : .now
            return
        }
        let (environment, lockedCount) = waiting[0]
        switch try Compaction.step(environment, keep: keep, countMax: Self.countMax, on: &connection) {
        case .removed(0): waiting.removeFirst()
        case .removed: break
        case .locked:
            waiting.removeFirst()
            if lockedCount + 1 < Self.lockedMax { waiting.append((environment, lockedCount + 1)) }
        }
        next = .now + (waiting.isEmpty ? interval : Self.pause)
    }
}
