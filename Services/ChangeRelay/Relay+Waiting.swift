import Essentials
import Kafka
import ObjectStore
import Postgres

/// Waiting for changes and confirmations.
extension Relay {
    private static let busyInterval = Duration.milliseconds(2)
    /// The poll interval while a transaction holds a counter, or a topic cannot be written.
    private static let idleInterval = Duration.milliseconds(25)

    /// Interrupts the wait of ``step(waitMax:)``.
    var wakeup: Wakeup { producer.wakeup }

    /// Whether there were changes a moment ago, so that more are likely.
    var isBusy: Bool { lastRead.map { .now - $0 < AwaitedPositions.activityWindow } ?? false }

    /// Waits for the next change or confirmation, until the next poll or the next step of compaction is due.
    mutating func wait(atMost waitMax: Duration, isInFlight: Bool) throws -> [Delivery] {
        guard isAwaiting else {
            let interval = isBusy || isInFlight ? Self.busyInterval : Self.idleInterval
            return producer.deliveries(waitMax: min(waitMax, interval))
        }
        let untilCompaction = max(compactor.next - .now, .zero)
        if try connection.waitForNotification(atMost: min(waitMax, untilCompaction), or: wakeup) { lastRead = .now }
        return producer.deliveries(waitMax: .zero)
    }
}
