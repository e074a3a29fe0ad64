package import Essentials

/// State of an object that requests a poll in each run.
package struct PollRunState: Equatable, Sendable {
    /// The run of the last request.
    package var run: Int64
    package var dueAt: Timestamp
    /// The last run with complete results; 0: none.
    package var finishedRun: Int64

    package init(run: Int64, dueAt: Timestamp, finishedRun: Int64) {
        self.run = run
        self.dueAt = dueAt
        self.finishedRun = finishedRun
    }

    /// Whether to request run `next`: the last run is complete, or has been in progress for longer than `staleMax`. A
    /// run in progress is not replaced before that: otherwise a slow poll might never complete.
    package func isDue(for next: Int64, now: Timestamp, staleMax: Duration) -> Bool {
        guard run < next else { return false }
        let age = Duration.milliseconds(now.millisecondsSinceEpoch - dueAt.millisecondsSinceEpoch)
        return finishedRun >= run || age > staleMax
    }
}
