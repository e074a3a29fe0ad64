package import Model
import ObjectStore
package import Postgres

/// The SQL of `access.audit`, as the command line needs it.
package enum AuditStore {
    package struct Row: Encodable, Sendable {
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
        /// What it was done to, one of them; `nil`: to whatever.
        package var subjects: [String]?
        /// An action that is left out.
        package var besides: AuditRecord.Action?

        package init(
            environment: EnvironmentID? = nil, action: String? = nil, actor: String? = nil, subjects: [String]? = nil
        ) {
            self.subjects = subjects
            self.environment = environment
            self.action = action
            self.actor = actor
        }
    }

    /// Records looked at by one statement.
    package static let pageCountMax: Int64 = 5_000

    /// How much of the log is looked at in one go.
    package struct Bound: Sendable {
        package let recordCountMax: Int
        package let deadline: ContinuousClock.Instant?

        /// - Parameter deadline: After it no further page is looked at; `nil`: as long as it takes.
        package init(recordCountMax: Int, deadline: ContinuousClock.Instant? = nil) {
            (self.recordCountMax, self.deadline) = (recordCountMax, deadline)
        }

        package static let none = Bound(recordCountMax: .max)
    }

    /// What was found of a selection.
    package struct Found: Sendable {
        /// The newest last.
        package var rows: [Row] = []
        /// Records with a smaller number were not looked at, since there were enough or the bound was reached; `nil`:
        /// all of the log was.
        package var before: Int64?
        /// The time of the oldest that was looked at; `nil`: all of the log was.
        package var since: String?

        package init() {}
    }

    /// The newest records of a selection, the newest last.
    package static func load(_ selection: Selection, countMax: Int, on connection: inout Connection) throws -> [Row] {
        try find(selection, countMax: countMax, within: .none, on: &connection).rows
    }

    /// The newest records of a selection. The log is read backwards by pages, until there are enough, or it begins, or
    /// the bound is reached.
    ///
    /// - Parameter last: Those with smaller numbers.
    package static func find(
        _ selection: Selection, before last: Int64 = .max, countMax: Int, within bound: Bound,
        on connection: inout Connection
    ) throws -> Found {
        var (rows, before, lookedCount): ([Row], Int64?, Int) = ([], last, 0)
        while let page = before, rows.count < countMax, lookedCount < bound.recordCountMax,
            bound.deadline.map({ ContinuousClock.now < $0 }) ?? true
        {
            let ids = try connection.run(self.page(of: selection.environment, before: page)).decode(Int64.self)
            lookedCount += ids.count
            before = ids.count < pageCountMax ? nil : ids.last
            let found = try connection.run(
                """
                SELECT a.id, \(sql: time), e.name, a.actor, a.action, a.subject, a.detail::text, a.address
                FROM access.audit a LEFT JOIN realm.environment e ON e.id = a.environment_id
                WHERE a.id = ANY (\(ids))
                    AND (\(selection.action)::text IS NULL OR starts_with(a.action, \(selection.action)))
                    AND (\(selection.actor)::text IS NULL OR a.actor = \(selection.actor))
                    AND a.action IS DISTINCT FROM \(selection.besides?.rawValue)::text
                    AND (\(selection.subjects)::text[] IS NULL OR a.subject = ANY (\(selection.subjects)))
                ORDER BY a.id DESC LIMIT \(Int64(countMax - rows.count))
                """
            ).map { row in
                var columns = row.columns
                let id: Int64 = try columns.next()
                return (id, try Row(&columns))
            }
            rows += found.map(\.1)
            if rows.count == countMax { before = found.last?.0 ?? before }
        }
        var answer = Found()
        (answer.rows, answer.before) = (rows.reversed(), before)
        if let before {
            answer.since = try connection.run(
                "SELECT \(sql: time) FROM access.audit a WHERE id >= \(before) ORDER BY id LIMIT 1"
            ).decode(String.self).first
        }
        return answer
    }

    private static let time: StaticString =
        #"to_char(a.happened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"#

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
    fileprivate init(_ columns: inout Columns) throws {
        self.init(
            time: try columns.next(), environment: try columns.next(), actor: try columns.next(),
            action: try columns.next(), subject: try columns.next(), detail: try columns.next(),
            address: try columns.next())
        try columns.end()
    }
}
