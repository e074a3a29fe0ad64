package import Postgres

extension DefectTracker {
    /// Selects the polling interval of each environment's tracker. Rows: environment, seconds, whether there is a
    /// shared account; without one, each person's own login is used.
    package static let intervals: Statement = """
        SELECT environment_id, poll_interval_seconds, secret IS NOT NULL FROM backend.defect_tracker
        ORDER BY environment_id
        """
}
