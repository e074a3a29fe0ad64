package import Postgres

/// Notifications of new positions, by which a reader of change logs waits without polling.
///
/// A transaction notifies if its counter is marked as awaited, and clears the mark. The reader polls again, then
/// requests the next notification. Writers whose readers are busy therefore never pay for NOTIFY.
///
/// While it listens, the reader must poll at least every ``pollInterval``: a notification is lost with the reader's
/// connection.
package enum AwaitedPositions {
    /// The maximum delay of a change whose notification was lost.
    package static let pollInterval = Duration.seconds(1)

    /// The time after a change during which readers poll instead: the next one is likely to follow.
    package static let activityWindow = Duration.milliseconds(100)

    /// The first schema with notifications.
    package static let schemaOldest: Int32 = 38

    /// Begins to receive notifications. A transaction of its own, before the session's first ``request(where:)``:
    /// LISTEN takes effect after the state that its own transaction reads.
    package static let listen: Statement = "LISTEN fieldpost_position"
    /// Ends it: a session that does not read its notifications delays those of others.
    package static let unlisten: Statement = "UNLISTEN fieldpost_position"

    /// Requests notifications. The statements precede the reader's poll in one transaction: a writer has then
    /// committed before the poll, or notifies.
    ///
    /// Rows of the last one: the number of environments without a request, because a writer holds their counters. Poll
    /// again then.
    ///
    /// - Parameter condition: Selects environments by the row `e`.
    package static func request(where condition: Statement) -> [Statement] {
        [
            // Nothing is lost if a failure of the server clears the requests, since that ends all connections.
            .asynchronousCommit,
            """
            UPDATE realm.environment SET is_awaited = true WHERE id IN (
                SELECT e.id FROM realm.environment e WHERE NOT e.is_awaited AND (\(condition))
                FOR NO KEY UPDATE SKIP LOCKED)
            """,
            "SELECT count(*) FROM realm.environment e WHERE NOT e.is_awaited AND (\(condition))",
        ]
    }
}
