package import Model
package import Postgres

/// The time for which an environment retains what people delete or no longer share.
package enum DeletionRetention {
    /// The retention time of an environment without its own, in days.
    package static let daysDefault: Int32 = 30
    /// The allowed retention times, in days.
    package static let daysRange: ClosedRange<Int32> = 1...3_650

    /// Returns a statement that selects an environment's retention time in days: one row.
    package static func days(in environment: EnvironmentID) -> Statement {
        """
        SELECT coalesce((
            SELECT \(column(of: "p")) FROM access.provider p WHERE p.environment_id = \(environment.rawValue)
        ), \(daysDefault))
        """
    }

    /// The column of a row of `access.provider`; null before schema 033.
    static func column(of row: Statement) -> Statement { "(to_jsonb(\(row))->>'deleted_days')::int" }
}
