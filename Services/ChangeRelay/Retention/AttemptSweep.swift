import Essentials
import FoundationEssentials
import ObjectStore
import Postgres

/// Removes old attempts to submit entries, which are history for people and not used for decisions.
struct AttemptSweep: Sweep {
    /// Maximum number of rows scanned per step.
    private static let pageCountMax: Int64 = 2_000

    let name = "attempts"
    let keep: Duration
    private var last = (environment: Int32(0), entry: UUID.zero)

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweepResult {
        // The table exists since schema 027.
        guard let page = try connection.runIfTableExists(page()) else {
            return SweepResult(removedCount: 0, isLast: true)
        }
        let (removedCount, environment, entry) = try page[0].decode(Int64.self, Int32?.self, UUID?.self)
        last = (environment ?? 0, entry ?? .zero)
        return SweepResult(removedCount: Int(removedCount), isLast: environment == nil)
    }

    /// Scans the complete attempts of the next entries: the rows of one entry are not split between pages.
    ///
    /// Rows: the number of removed rows, the last entry scanned.
    private func page() -> Statement {
        """
        WITH page AS MATERIALIZED (
            SELECT DISTINCT environment_id, entry_id FROM (
                SELECT environment_id, entry_id FROM submission.attempt
                WHERE (environment_id, entry_id) > (\(last.environment), \(last.entry))
                ORDER BY environment_id, entry_id LIMIT \(Self.pageCountMax)
            ) r
        ), old AS MATERIALIZED (
            SELECT a.place FROM page p CROSS JOIN LATERAL (
                SELECT a.ctid AS place FROM submission.attempt a
                WHERE a.environment_id = p.environment_id AND a.entry_id = p.entry_id
                    AND a.happened_at < now() - make_interval(secs => \(keep.inSeconds))
                FOR UPDATE SKIP LOCKED
            ) a
        ), gone AS (
            DELETE FROM submission.attempt WHERE ctid = ANY (ARRAY(SELECT place FROM old)) RETURNING 1
        )
        SELECT (SELECT count(*) FROM gone), l.environment_id, l.entry_id
        FROM (SELECT) AS one LEFT JOIN LATERAL (
            SELECT environment_id, entry_id FROM page ORDER BY environment_id DESC, entry_id DESC LIMIT 1
        ) l ON true
        """
    }
}
