import Essentials
import FoundationEssentials
import Model

/// An entry's log whose newest line does not tell its status, as somebody's SQL or a restored part may leave it.
enum EntryLogRule {
    /// An entry that was looked at, and of which nothing is to be written.
    struct Looked {
        let entry: UUID
        let status: EntryStatus
        let statusAt: Timestamp?

        /// - Returns: `nil` when the entry is gone, or something is written, or under way.
        init?(_ decided: SubmissionDecision, about state: SubmissionState, entry id: UUID) {
            guard case .live(let entry, _) = state.entry, decided == SubmissionDecision(step: .finished) else {
                return nil
            }
            (self.entry, status, statusAt) = (id, entry.status, entry.statusAt)
        }
    }

    /// The line that the log lacks: the entry has the last word; `nil` when it lacks none.
    ///
    /// - Parameter newest: The log's newest line; `nil`: there is none.
    static func line(
        of looked: Looked, newest: (status: EntryStatus?, time: Timestamp)?, now: Timestamp
    ) -> TimeEntryStatus? {
        if let newest, newest.status == looked.status { return nil }
        let last = [newest?.time, looked.statusAt].compactMap(\.self).max()
        return TimeEntryStatus(
            entry: looked.entry, status: looked.status, timestamp: TimeEntryStatus.time(now, after: last))
    }
}
