package import Audit
import Essentials
import Model
package import Postgres

/// Changes of deferred keys by operators. A change applies to the version that was displayed: a key that was deferred
/// again meanwhile is unchanged.
extension DeferredKeyStore {
    /// A key with the version that was displayed.
    package struct Seen {
        package let name: Name
        package let version: String

        package init(_ name: Name, version: String) { (self.name, self.version) = (name, version) }
        package init(_ row: Row) { self.init(row.name, version: row.version) }
    }

    /// The result of a change.
    package struct Changed: Equatable {
        package var count = 0
        /// Number of conflicts: keys whose version differs, which are unchanged.
        package var otherCount = 0

        package init(count: Int = 0, otherCount: Int = 0) { (self.count, self.otherCount) = (count, otherCount) }

        package static func += (left: inout Changed, right: Changed) {
            left.count += right.count
            left.otherCount += right.otherCount
        }
    }

    /// Thrown for keys of a write-blocked environment, with a description in one line.
    package struct EnvironmentInMoveError: Error, CustomStringConvertible {
        package let description =
            "the environment is being moved or was moved to another installation: its keys cannot be changed here"
    }

    /// - Parameter keys: The keys. Those of unreadable messages are skipped: they cannot be processed.
    /// - Throws: ``EnvironmentInMoveError``.
    package static func retry(
        _ keys: [Seen], by administrator: Administrator, on connection: inout Connection
    ) throws -> Changed {
        try change(keys.filter { $0.name.environmentID != 0 }, .parkedRetried, by: administrator, on: &connection) {
            """
            UPDATE pipeline.parked p SET is_dead = false, is_circuit = false, attempts = 0, next_at = now()
            \($0) RETURNING p.key, p.reason
            """
        }
    }

    /// - Throws: ``EnvironmentInMoveError``.
    package static func discard(
        _ keys: [Seen], by administrator: Administrator, on connection: inout Connection
    ) throws -> Changed {
        try change(keys, .parkedDiscarded, by: administrator, on: &connection) {
            "DELETE FROM pipeline.parked p \($0) RETURNING p.key, p.reason"
        }
    }

    /// Changes the keys of each group and environment in one transaction, with an audit record for each changed key.
    private static func change(
        _ keys: [Seen], _ action: AuditRecord.Action, by administrator: Administrator,
        on connection: inout Connection, _ statement: (_ condition: Statement) -> Statement
    ) throws -> Changed {
        var changed = Changed()
        for (owner, keys) in Dictionary(grouping: keys, by: \.name.owner) {
            let (names, versions) = (keys.map(\.name.key), keys.map(\.version))
            let environment = owner.environmentID == 0 ? nil : EnvironmentID(rawValue: owner.environmentID)
            let rows: Statement = """
                p.group_name = \(owner.group) AND p.environment_id = \(owner.environmentID) AND p.key = ANY (\(names))
                """
            changed += try connection.transaction { transaction in
                let changedRows = try transaction.run(
                    statement(
                        """
                        WHERE \(rows) AND (p.key, \(version)) IN (SELECT * FROM unnest(\(names), \(versions)))
                        """)
                ).decode(String.self, String.self)
                // A key with the expected version that was not changed belongs to a write-blocked environment.
                let (writeBlockedCount, otherCount) = try transaction.run(
                    """
                    SELECT count(*) FILTER (WHERE is_expected), count(*) FILTER (WHERE NOT is_expected)
                    FROM (
                        SELECT (p.key, \(version)) IN (SELECT * FROM unnest(\(names), \(versions))) AS is_expected
                        FROM pipeline.parked p WHERE \(rows) AND p.key <> ALL (\(changedRows.map(\.0)))
                    ) p
                    """
                )[0].decode(Int64.self, Int64.self)
                if writeBlockedCount > 0 { throw EnvironmentInMoveError() }
                // Records the reason, because the row is deleted.
                let subjects = changedRows.map { key, reason in
                    (key, ["group": owner.group, "reason": AuditRecord.plain(reason)])
                }
                try transaction.run(administrator.audit(action, subjects, in: environment))
                return Changed(count: changedRows.count, otherCount: Int(otherCount))
            }
        }
        return changed
    }
}
