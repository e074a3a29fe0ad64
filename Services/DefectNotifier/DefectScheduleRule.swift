import Model

/// When an environment's tracker is read.
enum DefectScheduleRule {
    /// The last run of a scope.
    struct Begun: Equatable {
        let run: Int64
        /// How long ago it was begun; `nil`: the next one was asked for.
        let age: Duration?
    }

    /// The scopes whose next run is due, with its number.
    static func due(
        _ begun: [DefectPoll.Scope: Begun], interval: Duration, comparisonInterval: Duration
    ) -> [(scope: DefectPoll.Scope, run: Int64)] {
        DefectPoll.Scope.allCases.compactMap { scope in
            guard let last = begun[scope] else { return (scope, 1) }
            let wait =
                switch scope {
                case .changes: interval
                case .comparison: comparisonInterval
                }
            return last.age.map { $0 >= wait } ?? true ? (scope, last.run + 1) : nil
        }
    }
}
