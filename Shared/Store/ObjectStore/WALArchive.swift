package import Postgres

/// The archive of PostgreSQL's WAL, as `pg_stat_archiver` describes it to every role.
package enum WALArchive {
    /// Whether this server archives; a standby's archive is that of its primary.
    package static let isOn: Statement = "current_setting('archive_mode') <> 'off' AND NOT pg_is_in_recovery()"

    /// Seconds since a file was archived, or since the statistics were reset; 0 if no complete file waits. An idle
    /// PostgreSQL completes none, and archives none.
    ///
    /// File names are compared without the timeline, their first 8 characters. The previous file is the newest that is
    /// complete; `+ 1` is for the first byte of a file.
    package static let waitSeconds: Statement = """
        CASE WHEN substr(last_archived_wal, 9, 16) COLLATE "C" >= substr(pg_walfile_name(pg_current_wal_lsn()
                - pg_size_bytes(current_setting('wal_segment_size')) + 1), 9)
            THEN 0
            ELSE greatest(0, extract(epoch FROM now() - coalesce(last_archived_time, stats_reset, now())))
        END::float8
        """
}
