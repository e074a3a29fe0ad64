import Logging
import ObjectStore
import Postgres

/// Removes what ended long ago, and measures for how long the oldest waits.
struct Sweep: ~Copyable {
    /// Rows removed by one statement.
    private static let countMax: Int64 = 5_000

    private var connection: Connection
    private let keep: Duration
    private let metrics: DeliveryMetrics

    init(conninfo: String, keep: Duration, metrics: DeliveryMetrics) throws {
        var connection = try Connection(conninfo, check: Lineage.check)
        try Schema.check(on: &connection, oldest: DeliveryHandler.schemaOldest)
        self.connection = connection
        self.keep = keep
        self.metrics = metrics
    }

    /// Several processes may do it at a time.
    ///
    /// - Returns: How long to wait until the next time.
    mutating func step() throws -> Duration {
        for (way, seconds) in try connection.run(DeliveryStore.oldest).decode(String.self, Double.self) {
            if let way = Way(rawValue: way) { metrics.oldest(way, seconds: seconds) }
        }
        let count = try connection.run(DeliveryStore.removeOld(keep, countMax: Self.countMax)).affectedCount
        return count < Self.countMax ? .seconds(15) : .milliseconds(100)
    }
}
