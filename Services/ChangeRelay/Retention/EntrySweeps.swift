import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Removes rows of the ledger that are not needed any more: no attempt is open, and the entry is closed for editing, or
/// it is deleted and the back end has no record of it.
///
/// All others stay as long as their entries: they prevent an entry from being submitted twice when it is reprocessed.
struct LedgerSweep: Sweep {
    /// Maximum number of rows scanned per step.
    private static let pageCountMax: Int64 = 1_000
    private static let closed = EntryStatus.allCases.filter(\.isClosed).map(\.rawValue)

    let name = "ledger rows"
    let keep: Duration
    private var last = (environment: Int32(0), entry: UUID.zero)

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweepResult {
        let (removedCount, environment, entry) = try connection.run(page(after: last))[0]
            .decode(Int64.self, Int32?.self, UUID?.self)
        last = (environment ?? 0, entry ?? .zero)
        return SweepResult(removedCount: Int(removedCount), isLast: environment == nil)
    }

    /// The lease starts at the last write, so it shows the row's age. A row that is written meanwhile has another
    /// version, and stays.
    ///
    /// Rows: the number of removed rows, the last row scanned.
    private func page(after last: (environment: Int32, entry: UUID)) -> Statement {
        """
        WITH page AS MATERIALIZED (
            SELECT environment_id, entry_id, realm_id, version, phase, lease_until, backend_id FROM submission.ledger
            WHERE (environment_id, entry_id) > (\(last.environment), \(last.entry))
            ORDER BY environment_id, entry_id LIMIT \(Self.pageCountMax)
        ), done AS MATERIALIZED (
            SELECT p.environment_id, p.entry_id, p.version FROM page p LEFT JOIN LATERAL (
                SELECT o.deleted, o.fields::json->>'status' AS status FROM store.object o
                WHERE o.environment_id = p.environment_id AND o.realm_id = p.realm_id
                    AND o.kind = \(Kind.timeEntry) AND o.id = p.entry_id
                OFFSET 0
            ) o ON true
            WHERE p.phase = 'settled' AND p.lease_until < now() - make_interval(secs => \(keep.inSeconds))
                AND (o.status = ANY (\(Self.closed)) OR coalesce(o.deleted, true) AND p.backend_id IS NULL)
        ), old AS MATERIALIZED (
            SELECT l.place FROM done d CROSS JOIN LATERAL (
                SELECT l.ctid AS place FROM submission.ledger l
                WHERE l.environment_id = d.environment_id AND l.entry_id = d.entry_id AND l.version = d.version
                FOR UPDATE SKIP LOCKED
            ) l
        ), gone AS (
            DELETE FROM submission.ledger WHERE ctid = ANY (ARRAY(SELECT place FROM old)) RETURNING 1
        )
        SELECT (SELECT count(*) FROM gone), l.environment_id, l.entry_id
        FROM (SELECT) AS one LEFT JOIN LATERAL (
            SELECT environment_id, entry_id FROM page ORDER BY environment_id DESC, entry_id DESC LIMIT 1
        ) l ON true
        """
    }
}

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
