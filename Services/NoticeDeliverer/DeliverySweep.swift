import Logging
import ObjectStore
import Postgres

/// Removes rows that ended long ago, and records the age of the oldest due row.
struct DeliverySweep: ~Copyable {
    /// Limit on the rows removed by one statement.
    private static let countMax: Int64 = 5_000

    private var connection: Connection
    private let retention: Duration
    private let metrics: DeliveryMetrics

    init(conninfo: String, retention: Duration, metrics: DeliveryMetrics) throws {
        var connection = try Connection(conninfo, check: Lineage.check)
        try Schema.check(on: &connection, oldest: DeliveryHandler.schemaOldest)
        self.connection = connection
        self.retention = retention
        self.metrics = metrics
    }

    /// Runs one sweep. Several processes may do so concurrently.
    ///
    /// - Returns: The delay until the next sweep.
    mutating func step() throws -> Duration {
        for (channel, seconds) in try connection.run(DeliveryStore.oldest).decode(String.self, Double.self) {
            if let channel = Channel(rawValue: channel) { metrics.oldest(channel, seconds: seconds) }
        }
        let count = try connection.run(DeliveryStore.removeOld(retention, countMax: Self.countMax)).affectedCount
        return count < Self.countMax ? .seconds(15) : .milliseconds(100)
    }
}
