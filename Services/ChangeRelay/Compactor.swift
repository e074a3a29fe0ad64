import Model
import ObjectStore
import Postgres

/// Whose turn it is to be compacted.
struct Compactor {
    /// Pointers removed at a time.
    private static let countMax = 2_000
    /// Between two steps there is time to publish.
    private static let pause = Duration.milliseconds(50)
    /// An environment that is locked so often in a row has its next turn after the interval.
    private static let lockedMax = 20

    private var waiting: [(environment: EnvironmentID, lockedCount: Int)] = []
    private var next = ContinuousClock.now

    /// Removes a bounded amount when it is time, of each environment that has something to remove once in `interval`.
    /// No lock holds it up.
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
