package import Essentials

/// What is known of an object that asks for something to be read, run after run: a poll.
package struct KnownRun: Equatable, Sendable {
    /// The run it was last written for.
    package var run: Int64
    package var dueAt: Timestamp
    /// The last run whose findings are written; 0: none.
    package var finishedRun: Int64

    package init(run: Int64, dueAt: Timestamp, finishedRun: Int64) {
        self.run = run
        self.dueAt = dueAt
        self.finishedRun = finishedRun
    }

    /// Whether it is written for the run `next`: when its last run is done, or was begun so long ago that something
    /// must be wrong with it. One that is still under way is left alone: overtaken again and again, it would never get
    /// to an end.
    package func isDue(for next: Int64, now: Timestamp, staleMax: Duration) -> Bool {
        guard run < next else { return false }
        let age = Duration.milliseconds(now.millisecondsSinceEpoch - dueAt.millisecondsSinceEpoch)
        return finishedRun >= run || age > staleMax
    }
}
