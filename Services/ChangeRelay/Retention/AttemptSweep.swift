import Essentials
import FoundationEssentials
import ObjectStore
import Postgres

/// What came of old attempts to submit entries: history for people, which nothing is decided from.
struct AttemptSweep: Sweep {
    /// Rows looked at in one part.
    private static let pageCountMax: Int64 = 2_000

    let name = "attempts"
    let keep: Duration
    private var last = (environment: Int32(0), entry: UUID.zero)

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweptPart {
        // Before schema 027 there are none.
        guard let page = try connection.runWhereThere(page()) else { return SweptPart(removedCount: 0, isLast: true) }
        let (removedCount, environment, entry) = try page[0].decode(Int64.self, Int32?.self, UUID?.self)
        last = (environment ?? 0, entry ?? .zero)
        return SweptPart(removedCount: Int(removedCount), isLast: environment == nil)
    }

    /// The entries after the last one, whole: rows of one entry are not parted between two pages.
    ///
    /// Rows: how many were removed, the last entry looked at.
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
