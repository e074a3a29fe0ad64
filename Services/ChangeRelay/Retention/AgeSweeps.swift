import Audit
import Essentials
import Logging
import ObjectStore
import Postgres

/// Removes refresh tokens that were revoked (the audit log has them), that providers no longer accept because of their
/// age, and those of unused devices.
struct TokenSweep: Sweep {
    private static let countMax: Int64 = 1_000

    let name = "refresh tokens"
    let keep: Duration
    /// The time since a device's last use.
    let unused: Duration

    func step(on connection: inout Connection) throws -> SweepResult {
        let count = try connection.run(
            """
            DELETE FROM onboarding.refresh_token WHERE (environment_id, id) IN (
                SELECT environment_id, id FROM onboarding.refresh_token
                WHERE revoked_at IS NOT NULL OR obtained_at < now() - make_interval(secs => \(keep.inSeconds))
                    OR device IS NOT NULL AND used_at < now() - make_interval(secs => \(unused.inSeconds))
                LIMIT \(Self.countMax) FOR UPDATE SKIP LOCKED)
            """
        ).affectedCount
        return SweepResult(removedCount: count, isLast: count < Int(Self.countMax))
    }
}

/// Removes old records of the audit log.
struct AuditSweep: Sweep {
    let name = "audit records"
    let keep: Duration
    private var last: Int64 = 0

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweepResult {
        let page = try AuditRecord.removePage(olderThan: keep.inSeconds, after: last, on: &connection)
        last = page.isLast ? 0 : page.last
        return SweepResult(removedCount: page.count, isLast: page.isLast)
    }
}

/// Removes dead-lettered keys without manual action. Each is logged, because its event is not processed.
struct ParkedSweep: Sweep {
    private static let countMax: Int64 = 100

    let name = "dead-lettered keys"
    let keep: Duration
    let logger: Logger

    func step(on connection: inout Connection) throws -> SweepResult {
        let rows = try connection.run(
            """
            WITH old AS MATERIALIZED (
                SELECT ctid AS place FROM pipeline.parked
                WHERE is_dead AND parked_at < now() - make_interval(secs => \(keep.inSeconds))
                LIMIT \(Self.countMax) FOR UPDATE SKIP LOCKED
            )
            DELETE FROM pipeline.parked WHERE ctid = ANY (ARRAY(SELECT place FROM old))
            RETURNING group_name, environment_id, key, reason
            """)
        for (group, environment, key, reason) in try rows.decode(String.self, Int32.self, String.self, String.self) {
            logger.warning(
                "dead-lettered key removed by retention",
                metadata: [
                    "group": "\(group)", "environment": "\(environment)", "key": "\(key)", "reason": "\(reason)",
                ])
        }
        return SweepResult(removedCount: rows.count, isLast: rows.count < Int(Self.countMax))
    }
}
