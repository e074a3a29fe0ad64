import FoundationEssentials
import Model

/// Which people a run polls.
enum ScheduleRule {
    /// What is known of a person's poll.
    struct Known: Equatable {
        /// The run it was last written for.
        var run: Int64
        var dueAt: Timestamp
        /// The last run whose findings are written; 0: none.
        var finishedRun: Int64
    }

    /// The people whose poll is written for `run`: those without one, those whose last one is done, and those whose
    /// last one was begun so long ago that something must be wrong with it. A poll that is still under way is left
    /// alone: overtaken again and again, it would never get to an end.
    static func due(
        _ people: [String], known: [String: Known], run: Int64, now: Timestamp, overdueMax: Duration
    ) -> [String] {
        people.filter { person in
            guard let poll = known[person] else { return true }
            guard poll.run < run else { return false }
            let age = Duration.milliseconds(now.millisecondsSinceEpoch - poll.dueAt.millisecondsSinceEpoch)
            return poll.finishedRun >= poll.run || age > overdueMax
        }
    }
}
