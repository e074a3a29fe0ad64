package import Postgres

/// The database's timeline, which ends when a backup is restored or a standby is promoted, possibly with a loss of
/// transactions.
package enum Lineage {
    /// The check at the start of a service's sessions (`Connection.init`).
    package static let check: StaticString = "SELECT realm.lineage_check()"

    /// Whether a process that gets this error must exit: its cached state, such as the numbers of realms, may belong to
    /// a different timeline.
    @Sendable package static func isOver(_ error: any Error) -> Bool {
        (error as? PostgresError)?.isTimelineChange == true
    }

    /// Maximum number of positions that an environment allocates per second, on average over its lifetime.
    package static let positionsPerSecondMax: Int64 = 1 << 20

    /// The next generation of an environment, for an UPDATE or SELECT of its row: higher than any generation that a
    /// lost timeline may have had.
    package static let nextGeneration: Statement = "greatest(generation + 1, extract(epoch FROM now())::bigint)"

    /// The next position of a counter, accordingly.
    package static let nextPosition: Statement =
        "greatest(position + 1, extract(epoch FROM now())::bigint * \(positionsPerSecondMax))"

    /// Separates the state of devices and services from the restored database.
    ///
    /// It is unknown which positions were allocated after the last transaction that is still present. But no
    /// environment allocates more than `positionsPerSecondMax`: a position derived from the clock exceeds all of them,
    /// independent of the age of the backup and the number of restores. It stays below 2^53 until 2242, so that every
    /// JSON reader can represent it.
    ///
    /// - Environments get a new generation, so that devices discard their copies, and every object of a published kind
    ///   is republished, in an epoch higher than that of any message in Kafka. New environments get numbers higher than
    ///   those whose events may exist.
    /// - The back ends' data is compared as soon as possible.
    package static let restore: [Statement] = [
        """
        UPDATE realm.environment SET generation = \(nextGeneration), position = \(nextPosition)
        WHERE \(isWritten("id"))
        """,
        """
        UPDATE onboarding.counter SET position = \(nextPosition)
        """,
        """
        SELECT setval('realm.environment_id_seq', last_value + \(environmentsAddedMax)) FROM realm.environment_id_seq
        """,
        "UPDATE realm.relay SET epoch = greatest(epoch + 1, extract(epoch FROM now())::bigint)",
        "UPDATE poll.run SET started_at = '-infinity', full_started_at = NULL WHERE \(isWritten("environment_id"))",
        "UPDATE realm.lineage SET restored_at = now()",
    ]

    /// Whether the environment can be written here. Write-blocked, moved and arriving environments cannot; one that is
    /// rolled back gets its positions then.
    private static func isWritten(_ column: Statement) -> Statement {
        """
        NOT EXISTS (SELECT FROM realm.move m WHERE m.environment_id = \(column)
            AND m.state IN ('held', 'left', 'arriving', 'whole'))
        """
    }

    /// Maximum number of environments that may have been added and lost.
    private static let environmentsAddedMax: Int64 = 1_000

    /// Accepts the current timeline of the database.
    package static let accept: Statement = """
        UPDATE realm.lineage l SET system_identifier = f.system_identifier, timeline = f.timeline, table_id = f.table_id
        FROM realm.lineage_found() f
        """

    /// Rows: whether the timeline is unchanged, as far as PostgreSQL reports.
    package static let isUnchanged: Statement = """
        SELECT EXISTS (SELECT FROM realm.lineage l JOIN realm.lineage_found() f
            USING (system_identifier, timeline, table_id))
        """

    /// Terminates all other sessions of the role, whose cached state belongs to the previous timeline.
    package static let endSessions: Statement = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
        """
}
