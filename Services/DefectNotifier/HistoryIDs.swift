import Environments
import FoundationEssentials

extension TrackerIDs {
    /// The id of a row of the history. Rows of one record that name the same action, user and second are one.
    func row(_ row: HistoryRow) -> UUID { id("row", row.defect.record, row.action, row.time, row.user) }

    /// The id of the notice that tells a person of a row.
    ///
    /// - Parameter email: The person's e-mail address.
    func notice(of row: HistoryRow, to email: String) -> UUID {
        id("notice", row.defect.record, row.action, row.time, email)
    }
}
