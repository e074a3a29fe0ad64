package import Postgres

extension Statement {
    /// The sessions that wait for a lock in the current database. `pg_locks` also has those of other tests' databases.
    package static let lockWaits: Statement =
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
}
