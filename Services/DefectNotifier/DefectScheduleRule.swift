import Model

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
