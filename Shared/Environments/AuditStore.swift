package import Model
package import Postgres
import Realms

/// The SQL of `access.audit`, as the command line needs it.
package enum AuditStore {
    package struct Row: Encodable {
        package let time: String
        package let environment: String?
        package let actor: String
        package let action: String
        package let subject: String
        package let detail: String
        package let address: String
    }

    /// What is listed.
    package struct Selection {
        package var environment: EnvironmentID?
        /// What the action begins with.
        package var action: String?
        package var actor: String?
        /// What it was done to.
        package var subject: String?

        package init(
            environment: EnvironmentID? = nil, action: String? = nil, actor: String? = nil, subject: String? = nil
        ) {
            self.subject = subject
            self.environment = environment
            self.action = action
            self.actor = actor
        }
    }

    /// Records looked at by one statement.
    package static let pageCountMax: Int64 = 5_000

    /// The newest records of a selection, the newest last. It is read backwards by pages, until there are enough or
    /// the log begins.
    package static func load(_ selection: Selection, countMax: Int, on connection: inout Connection) throws -> [Row] {
        var rows: [Row] = []
        var before = Int64.max
        while rows.count < countMax {
            let ids = try connection.run(page(of: selection.environment, before: before)).decode(Int64.self)
            guard let first = ids.last else { break }
            before = first
            rows += try connection.run(
                """
                SELECT to_char(a.happened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), e.name, a.actor,
                    a.action, a.subject, a.detail::text, a.address
                FROM access.audit a LEFT JOIN realm.environment e ON e.id = a.environment_id
                WHERE a.id = ANY (\(ids))
                    AND (\(selection.action)::text IS NULL OR starts_with(a.action, \(selection.action)))
                    AND (\(selection.actor)::text IS NULL OR a.actor = \(selection.actor))
                    AND (\(selection.subject)::text IS NULL OR a.subject = \(selection.subject))
                ORDER BY a.id DESC LIMIT \(Int64(countMax - rows.count))
                """
            ).map(Row.init)
        }
        return rows.reversed()
    }

    /// The newest ids below one, by the primary key or by the index on the environment.
    private static func page(of environment: EnvironmentID?, before: Int64) -> Statement {
        guard let environment else {
            return "SELECT id FROM access.audit WHERE id < \(before) ORDER BY id DESC LIMIT \(pageCountMax)"
        }
        return """
            SELECT id FROM access.audit WHERE environment_id = \(environment.rawValue) AND id < \(before)
            ORDER BY id DESC LIMIT \(pageCountMax)
            """
    }

    /// Removes old records.
    ///
    /// - Parameter progress: Called after each page with how many are removed.
    package static func prune(
        olderThan seconds: Double, on connection: inout Connection, progress: (Int) -> Void
    ) throws -> Int {
        var (count, last) = (0, Int64(0))
        while true {
            let page = try AuditRecord.removePage(olderThan: seconds, after: last, on: &connection)
            count += page.count
            last = page.last
            if page.isLast { return count }
            progress(count)
        }
    }
}

extension AuditStore.Row {
    package init(_ row: Row) throws {
        var columns = row.columns
        self.init(
            time: try columns.next(), environment: try columns.next(), actor: try columns.next(),
            action: try columns.next(), subject: try columns.next(), detail: try columns.next(),
            address: try columns.next())
        try columns.end()
    }
}
