package import Postgres

extension DefectTracker {
    /// How often each environment's tracker is asked what has happened, of those that have an account for it. Rows:
    /// environment, seconds.
    package static let intervals: Statement = """
        SELECT environment_id, poll_interval_seconds FROM backend.defect_tracker
        WHERE secret IS NOT NULL ORDER BY environment_id
        """
}
