import Essentials
import FoundationEssentials
import Model

/// Repair of a status log whose newest line differs from the entry's status, for example after manual SQL or a partial
/// restore.
enum EntryLogRule {
    /// An entry without pending writes.
    struct UnchangedEntry {
        let entry: UUID
        let status: EntryStatus
        let statusAt: Timestamp?

        /// - Returns: `nil` if the entry is deleted, or the decision writes something or starts a call.
        init?(_ decided: SubmissionDecision, about state: SubmissionState, entry id: UUID) {
            guard case .live(let entry, _) = state.entry, decided == SubmissionDecision(step: .finished) else {
                return nil
            }
            (self.entry, status, statusAt) = (id, entry.status, entry.statusAt)
        }
    }

    /// Returns the missing line of the log; `nil` if the newest line has the entry's status.
    ///
    /// - Parameter newest: The newest line of the log; `nil` if the log is empty.
    static func line(
        of unchanged: UnchangedEntry, newest: (status: EntryStatus?, time: Timestamp)?, now: Timestamp
    ) -> TimeEntryStatus? {
        if let newest, newest.status == unchanged.status { return nil }
        let last = [newest?.time, unchanged.statusAt].compactMap(\.self).max()
        return TimeEntryStatus(
            entry: unchanged.entry, status: unchanged.status, timestamp: TimeEntryStatus.time(now, after: last))
    }
}
