package import Postgres

/// Which history of the database this is: one that PostgreSQL may have cut short, when a backup was restored or a
/// standby took over.
package enum Lineage {
    /// What a service's sessions begin with (`Connection.init`).
    package static let check: StaticString = "SELECT realm.lineage_check()"

    /// Whether a process that meets this error must end: what it remembers, such as the numbers of realms, may be of
    /// something else by now.
    @Sendable package static func isOver(_ error: any Error) -> Bool {
        (error as? PostgresError)?.isOfOtherHistory == true
    }

    /// The most positions that an environment hands out per second, over its whole life.
    package static let positionsPerSecondMax: Int64 = 1 << 20

    /// The generation of an environment after its own, in an UPDATE or SELECT of its row: beyond those that a history
    /// may have had that was lost.
    package static let nextGeneration: Statement = "greatest(generation + 1, extract(epoch FROM now())::bigint)"

    /// Likewise the position of a counter.
    package static let nextPosition: Statement =
        "greatest(position + 1, extract(epoch FROM now())::bigint * \(positionsPerSecondMax))"

    /// What keeps what others remember apart from what the database goes on with.
    ///
    /// Nobody knows what was handed out after the last transaction that is still there. But no environment hands out
    /// more than `positionsPerSecondMax`: so a position made from the clock is beyond all of it, however old the backup
    /// is and however often it is restored; and below 2^53 until 2242, so that every JSON reader can hold it.
    ///
    /// - Environments get a new generation, so that devices throw away what they hold, and every routed object is
    ///   published again, in an epoch beyond those that messages in Kafka may have. The numbers of new environments
    ///   begin beyond those whose events may be there.
    /// - What back ends hold is compared as soon as possible.
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

    /// Whether an environment is written here: nothing of one that is held for its move, or has left, can be, and one
    /// that is arriving has not begun. One that is taken back gets its positions then.
    private static func isWritten(_ column: Statement) -> Statement {
        """
        NOT EXISTS (SELECT FROM realm.move m WHERE m.environment_id = \(column)
            AND m.state IN ('held', 'left', 'arriving', 'whole'))
        """
    }

    /// Environments that were added and lost, at most.
    private static let environmentsAddedMax: Int64 = 1_000

    /// The database is what it is from now on.
    package static let accept: Statement = """
        UPDATE realm.lineage l SET system_identifier = f.system_identifier, timeline = f.timeline, table_id = f.table_id
        FROM realm.lineage_found() f
        """

    /// Rows: whether nothing has changed as far as PostgreSQL can tell.
    package static let isUnchanged: Statement = """
        SELECT EXISTS (SELECT FROM realm.lineage l JOIN realm.lineage_found() f
            USING (system_identifier, timeline, table_id))
        """

    /// Ends every other session of the role: who has one remembers things of the former history.
    package static let endSessions: Statement = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
        """
}
