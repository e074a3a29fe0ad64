package import Audit
import Essentials
import Model
package import Postgres

/// What people do about parked keys. A key is changed as somebody saw it: one that was parked again meanwhile stays.
extension ParkedStore {
    /// A key as somebody saw it.
    package struct Seen {
        package let name: Name
        package let version: String

        package init(_ name: Name, version: String) { (self.name, self.version) = (name, version) }
        package init(_ row: Row) { self.init(row.name, version: row.version) }
    }

    /// What came of a change.
    package struct Changed: Equatable {
        package var count = 0
        /// Keys that are parked otherwise than they were seen: nothing was done to them.
        package var otherCount = 0

        package init(count: Int = 0, otherCount: Int = 0) { (self.count, self.otherCount) = (count, otherCount) }

        package static func += (left: inout Changed, right: Changed) {
            left.count += right.count
            left.otherCount += right.otherCount
        }
    }

    /// Why nothing can be done about an environment's keys, in one line.
    package struct IsMoving: Error, CustomStringConvertible {
        package let description =
            "the environment is being moved to another installation, or has moved: nothing is done here about its keys"
    }

    /// - Parameter keys: None of a message that could not be read: there is nothing to decide about.
    /// - Throws: ``IsMoving``.
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

    /// - Throws: ``IsMoving``.
    package static func discard(
        _ keys: [Seen], by administrator: Administrator, on connection: inout Connection
    ) throws -> Changed {
        try change(keys, .parkedDiscarded, by: administrator, on: &connection) {
            "DELETE FROM pipeline.parked p \($0) RETURNING p.key, p.reason"
        }
    }

    /// Each group's and environment's keys, one transaction for each, with a record for each key that was changed.
    private static func change(
        _ keys: [Seen], _ action: AuditRecord.Action, by administrator: Administrator,
        on connection: inout Connection, _ statement: (_ condition: Statement) -> Statement
    ) throws -> Changed {
        var changed = Changed()
        for (place, keys) in Dictionary(grouping: keys, by: \.name.place) {
            let (names, versions) = (keys.map(\.name.key), keys.map(\.version))
            let environment = place.environmentID == 0 ? nil : EnvironmentID(rawValue: place.environmentID)
            let rows: Statement = """
                p.group_name = \(place.group) AND p.environment_id = \(place.environmentID) AND p.key = ANY (\(names))
                """
            changed += try connection.transaction { transaction in
                let done = try transaction.run(
                    statement(
                        """
                        WHERE \(rows) AND (p.key, \(version)) IN (SELECT * FROM unnest(\(names), \(versions)))
                        """)
                ).decode(String.self, String.self)
                // What is parked as it was seen, and stays all the same, is an environment's that is held.
                let (heldCount, otherCount) = try transaction.run(
                    """
                    SELECT count(*) FILTER (WHERE is_seen), count(*) FILTER (WHERE NOT is_seen)
                    FROM (
                        SELECT (p.key, \(version)) IN (SELECT * FROM unnest(\(names), \(versions))) AS is_seen
                        FROM pipeline.parked p WHERE \(rows) AND p.key <> ALL (\(done.map(\.0)))
                    ) p
                    """
                )[0].decode(Int64.self, Int64.self)
                if heldCount > 0 { throw IsMoving() }
                // Its row is gone soon: why it was parked is known from here.
                let subjects = done.map { key, reason in
                    (key, ["group": place.group, "reason": AuditRecord.plain(reason)])
                }
                try transaction.run(administrator.audit(action, subjects, in: environment))
                return Changed(count: done.count, otherCount: Int(otherCount))
            }
        }
        return changed
    }
}
