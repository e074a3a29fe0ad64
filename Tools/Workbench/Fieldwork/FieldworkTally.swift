import Synchronization

/// Counts the progress of teams, tasks, positions and appointments.
final class FieldworkTally: Sendable {
    struct Counts: Equatable, Sendable {
        /// Tasks and edits that people are done with.
        var finished = 0
        /// In this run, as all that follows.
        var made = 0
        var completed = 0
        /// Edits of calendars that all recipients have received.
        var edits = 0
        var positions = 0

        /// For a line of progress.
        var line: String {
            [("made", made), ("completed", completed), ("edits seen", edits), ("positions", positions)]
                .filter { $0.1 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        }
    }

    private let counts = Mutex(Counts())

    var now: Counts { counts.withLock { $0 } }

    func count(_ what: any WritableKeyPath<Counts, Int> & Sendable) { counts.withLock { $0[keyPath: what] += 1 } }

    /// Counts finished tasks and edits, of this or an earlier run.
    func finish(_ count: Int) { counts.withLock { $0.finished += count } }
}
