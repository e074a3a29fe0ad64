import Model
import Postgres
import Realms

/// Whose turn it is to be compacted.
struct Compactor {
    /// Pointers removed at a time.
    private static let countMax = 2_000
    /// Between two steps there is time to publish.
    private static let pause = Duration.milliseconds(50)

    private var waiting: [EnvironmentID] = []
    private var next = ContinuousClock.now

    /// Removes a bounded amount when it is time, of each environment once in `interval`.
    mutating func step(keep: Duration, interval: Duration, on connection: inout Connection) throws {
        guard ContinuousClock.now >= next else { return }
        guard let environment = waiting.first else {
            for row in try connection.run("SELECT id FROM realm.environment ORDER BY id") {
                waiting.append(EnvironmentID(rawValue: try row.value(0)))
            }
            next = waiting.isEmpty ? .now + interval : .now
            return
        }
        let count = try Compaction.step(environment, keep: keep, countMax: Self.countMax, on: &connection)
        if count == 0 { waiting.removeFirst() }
        next = .now + (waiting.isEmpty ? interval : Self.pause)
    }
}
