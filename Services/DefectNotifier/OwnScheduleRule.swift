import Essentials
import Model

/// When the tracker is read with which person's own login. A person's next round begins an interval after the last one;
/// no more than twice as many begin at a time as must, so that those of many people stay spread over the interval, also
/// after a standstill.
enum OwnScheduleRule {
    /// The last run of a person and a scope.
    struct Begun: Equatable {
        let run: Int64
        let finishedRun: Int64
        /// How long ago it was begun.
        let age: Duration
        /// Whether the next one is asked for, before its time.
        let isNextAskedFor: Bool
    }

    /// A run that is to be begun.
    struct Due: Equatable {
        let realm: Int32
        let run: Int64
        var isAskedFor = false
    }

    /// The people whose next run of a scope can be begun: first of those for whom one was asked for, then of those who
    /// have none yet, then of those who have waited longest. A run that is under way is not overtaken, unless something
    /// must be wrong with it.
    static func due(
        _ people: [Int32], _ begun: [Int32: Begun], interval: Duration, staleMax: Duration
    ) -> [Due] {
        let due = people.compactMap { realm -> (rank: Int, age: Duration, due: Due)? in
            guard let last = begun[realm] else { return (1, .zero, Due(realm: realm, run: 1)) }
            let next = Due(realm: realm, run: last.run + 1, isAskedFor: last.isNextAskedFor)
            guard last.isNextAskedFor || last.age >= interval,
                last.finishedRun >= last.run || last.age > staleMax
            else { return nil }
            return (last.isNextAskedFor ? 0 : 2, last.age, next)
        }
        return due.sorted { ($0.rank, $1.age, $0.due.realm) < ($1.rank, $0.age, $1.due.realm) }.map(\.due)
    }

    /// Those that are begun by now. Commands can ask for rounds without end: theirs are at most half, but for what the
    /// others leave. Since twice as many may begin as must, nobody has to wait for longer than an interval for that.
    ///
    /// - Parameter due: In their order.
    static func chosen(_ due: [Due], countMax: Int) -> [Due] {
        let asked = due.filter(\.isAskedFor)
        let others = due.filter { !$0.isAskedFor }
        let askedCount = min(asked.count, max(countMax / 2, countMax - others.count))
        return Array(asked.prefix(askedCount) + others.prefix(countMax - askedCount))
    }

    /// How many of so many people's runs may be begun after a while in which none was.
    static func countMax(people count: Int, elapsed: Duration, interval: Duration) -> Int {
        let share = Double(elapsed.milliseconds) / Double(max(interval.milliseconds, 1))
        return max(1, Int((2 * Double(count) * min(share, 1)).rounded(.up)))
    }

    /// Whether a person is told late: their next round should have begun an interval ago.
    static func isLate(_ begun: Begun?, interval: Duration) -> Bool { begun.map { $0.age >= interval * 2 } ?? false }
}
