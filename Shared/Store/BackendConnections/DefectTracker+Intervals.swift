package import Postgres

extension DefectTracker {
    /// How often each environment's tracker is asked what has happened. Rows: environment, seconds, whether there is an
    /// account for it; without one each person's own login is used.
    package static let intervals: Statement = """
        SELECT environment_id, poll_interval_seconds, secret IS NOT NULL FROM backend.defect_tracker
        ORDER BY environment_id
        """
}
