import Audit
import Essentials
import Logging
import ObjectStore
import Postgres

/// Refresh tokens that were revoked, which the audit log knows, those so old that no provider takes them, and those of
/// devices that did not come for long.
struct TokenSweep: Sweep {
    private static let countMax: Int64 = 1_000

    let name = "refresh tokens"
    let keep: Duration
    /// From a device's last use on.
    let unused: Duration

    func step(on connection: inout Connection) throws -> SweptPart {
        let count = try connection.run(
            """
            DELETE FROM onboarding.refresh_token WHERE (environment_id, id) IN (
                SELECT environment_id, id FROM onboarding.refresh_token
                WHERE revoked_at IS NOT NULL OR obtained_at < now() - make_interval(secs => \(keep.inSeconds))
                    OR device IS NOT NULL AND used_at < now() - make_interval(secs => \(unused.inSeconds))
                LIMIT \(Self.countMax) FOR UPDATE SKIP LOCKED)
            """
        ).affectedCount
        return SweptPart(removedCount: count, isLast: count < Int(Self.countMax))
    }
}

/// Old records of the audit log.
struct AuditSweep: Sweep {
    let name = "audit records"
    let keep: Duration
    private var last: Int64 = 0

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweptPart {
        let page = try AuditRecord.removePage(olderThan: keep.inSeconds, after: last, on: &connection)
        last = page.isLast ? 0 : page.last
        return SweptPart(removedCount: page.count, isLast: page.isLast)
    }
}

/// Dead keys that nobody has looked after. Each is named in the log: what it stood for is not done.
struct ParkedSweep: Sweep {
    private static let countMax: Int64 = 100

    let name = "dead keys"
    let keep: Duration
    let logger: Logger

    func step(on connection: inout Connection) throws -> SweptPart {
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
                "a dead key that nobody looked after is removed",
                metadata: [
                    "group": "\(group)", "environment": "\(environment)", "key": "\(key)", "reason": "\(reason)",
                ])
        }
        return SweptPart(removedCount: rows.count, isLast: rows.count < Int(Self.countMax))
    }
}
