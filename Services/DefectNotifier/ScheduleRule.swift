import Essentials
import Model

/// The schedule of polls with people's own logins. A person's next poll starts one interval after the last one. At most
/// twice the necessary number starts at a time, so that polls stay spread over the interval, also after a downtime.
enum OwnLoginScheduleRule {
    /// The last run of a person and a scope.
    struct LastRun: Equatable {
        let run: Int64
        let finishedRun: Int64
        /// Time since its start.
        let age: Duration
        /// Whether the next run is requested before its time.
        let isNextRequested: Bool
    }

    /// A run that can start.
    struct DueRun: Equatable {
        let realm: Int32
        let run: Int64
        var isRequested = false
    }

    /// Returns the people whose next run of a scope can start: first requested runs, then people without a run, then
    /// those who have waited longest. A run in progress is not superseded unless it is older than `staleMax`.
    static func due(
        _ people: [Int32], _ lastRuns: [Int32: LastRun], interval: Duration, staleMax: Duration
    ) -> [DueRun] {
        let due = people.compactMap { realm -> (rank: Int, age: Duration, due: DueRun)? in
            guard let last = lastRuns[realm] else { return (1, .zero, DueRun(realm: realm, run: 1)) }
            let next = DueRun(realm: realm, run: last.run + 1, isRequested: last.isNextRequested)
            guard last.isNextRequested || last.age >= interval, last.finishedRun >= last.run || last.age > staleMax
            else { return nil }
            return (last.isNextRequested ? 0 : 2, last.age, next)
        }
        return due.sorted { ($0.rank, $1.age, $0.due.realm) < ($1.rank, $0.age, $1.due.realm) }.map(\.due)
    }

    /// Selects the runs that start now. Commands can request polls without limit: requested ones get at most half of
    /// `countMax`, plus what the others leave. Since `countMax` is twice the necessary number, no person waits longer
    /// than an interval because of them.
    ///
    /// - Parameter due: In their order.
    static func selected(_ due: [DueRun], countMax: Int) -> [DueRun] {
        let requested = due.filter(\.isRequested)
        let others = due.filter { !$0.isRequested }
        let requestedCount = min(requested.count, max(countMax / 2, countMax - others.count))
        return Array(requested.prefix(requestedCount) + others.prefix(countMax - requestedCount))
    }

    /// Returns the number of runs that may start after a time without any.
    static func countMax(people count: Int, elapsed: Duration, interval: Duration) -> Int {
        let share = Double(elapsed.milliseconds) / Double(max(interval.milliseconds, 1))
        return max(1, Int((2 * Double(count) * min(share, 1)).rounded(.up)))
    }

    /// Whether a person's polls are late: the next one should have started an interval ago.
    static func isLate(_ lastRun: LastRun?, interval: Duration) -> Bool {
        lastRun.map { $0.age >= interval * 2 } ?? false
    }
}

/// The schedule of an environment's polls.
enum DefectScheduleRule {
    /// The last run of a scope.
    struct LastRun: Equatable {
        let run: Int64
        /// Time since its start; `nil`: the next run was requested.
        let age: Duration?
    }

    /// Returns the scopes whose next run is due, with its number.
    static func due(
        _ lastRuns: [DefectPoll.Scope: LastRun], interval: Duration, comparisonInterval: Duration
    ) -> [(scope: DefectPoll.Scope, run: Int64)] {
        DefectPoll.Scope.allCases.compactMap { scope in
            guard let last = lastRuns[scope] else { return (scope, 1) }
            let wait =
                switch scope {
                case .changes: interval
                case .comparison: comparisonInterval
                }
            return last.age.map { $0 >= wait } ?? true ? (scope, last.run + 1) : nil
        }
    }
}
