package import Model
package import Postgres

/// The SQL of `access.audit` for the command line and the console.
package enum AuditStore {
    /// A record for output. Encoded in the console's API and in the command line's JSON: the keys are part of both.
    package struct Row: Encodable, Sendable {
        package let time: String
        package let environment: String?
        package let actor: String
        package let action: String
        package let subject: String
        package let detail: String
        package let address: String
    }

    /// The criteria of a search.
    package struct Selection {
        package var environment: EnvironmentID?
        /// The prefix of the action.
        package var action: String?
        package var actor: String?
        /// The accepted subjects; `nil`: all.
        package var subjects: [String]?
        /// An action to exclude.
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

    /// The number of records that one statement scans.
    package static let pageCountMax: Int64 = 5_000

    /// The limits of one search.
    package struct Bound: Sendable {
        package let recordCountMax: Int
        package let deadline: ContinuousClock.Instant?

        /// - Parameter deadline: No page is scanned after it; `nil`: no time limit.
        package init(recordCountMax: Int, deadline: ContinuousClock.Instant? = nil) {
            (self.recordCountMax, self.deadline) = (recordCountMax, deadline)
        }

        package static let none = Bound(recordCountMax: .max)
    }

    /// The result of a search.
    package struct SearchResult: Sendable {
        /// Sorted by time.
        package var rows: [Row] = []
        /// The id below which no records were scanned, because enough were found or a limit was reached; `nil`: the
        /// whole log was scanned.
        package var before: Int64?
        /// The time of the oldest scanned record; `nil`: the whole log was scanned.
        package var since: String?

        package init() {}
    }

    /// Returns the newest records of a selection, sorted by time.
    package static func load(_ selection: Selection, countMax: Int, on connection: inout Connection) throws -> [Row] {
        try find(selection, countMax: countMax, within: .none, on: &connection).rows
    }

    /// Searches the log backwards, page by page, until enough records are found, the log ends, or a limit is reached.
    ///
    /// - Parameter last: Only records with smaller ids.
    package static func find(
        _ selection: Selection, before last: Int64 = .max, countMax: Int, within bound: Bound,
        on connection: inout Connection
    ) throws -> SearchResult {
        var (rows, before, scannedCount): ([Row], Int64?, Int) = ([], last, 0)
        while let page = before, rows.count < countMax, scannedCount < bound.recordCountMax,
            bound.deadline.map({ ContinuousClock.now < $0 }) ?? true
        {
            let ids = try connection.run(self.page(of: selection.environment, before: page)).decode(Int64.self)
            scannedCount += ids.count
            before = ids.count < pageCountMax ? nil : ids.last
            let matches = try connection.run(
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
            ).decode(
                Int64.self, String.self, String?.self, String.self, String.self, String.self, String.self, String.self)
            rows += matches.map {
                Row(time: $1, environment: $2, actor: $3, action: $4, subject: $5, detail: $6, address: $7)
            }
            if rows.count == countMax { before = matches.last?.0 ?? before }
        }
        var result = SearchResult()
        (result.rows, result.before) = (rows.reversed(), before)
        if let before {
            result.since = try connection.run(
                "SELECT \(sql: time) FROM access.audit a WHERE id >= \(before) ORDER BY id LIMIT 1"
            ).decode(String.self).first
        }
        return result
    }

    private static let time: StaticString =
        #"to_char(a.happened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"#

    /// Selects the newest ids below one, by the primary key or by the index on the environment.
    private static func page(of environment: EnvironmentID?, before: Int64) -> Statement {
        guard let environment else {
            return "SELECT id FROM access.audit WHERE id < \(before) ORDER BY id DESC LIMIT \(pageCountMax)"
        }
        return """
            SELECT id FROM access.audit WHERE environment_id = \(environment.rawValue) AND id < \(before)
            ORDER BY id DESC LIMIT \(pageCountMax)
            """
    }

    /// Deletes old records.
    ///
    /// - Parameter progress: Called after each page with the number of deleted records.
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
