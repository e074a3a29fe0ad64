import BackendConnections
import FoundationEssentials

extension TrackerIDs {
    /// The id of a row of the history: made of the tracker's own where it has one. Otherwise rows of one record that
    /// name the same action, user and second are one.
    func row(_ row: HistoryRow) -> UUID {
        guard let number = row.id else { return rowWithoutID(row) }
        return id("history", row.defect.record, number)
    }

    /// The id of a row as earlier releases made it: rows that they have processed are not notified again.
    func rowWithoutID(_ row: HistoryRow) -> UUID { id("row", row.defect.record, row.action, row.time, row.user) }

    /// The id of the notice that tells a person of a row.
    ///
    /// - Parameter email: The person's e-mail address.
    func notice(of row: HistoryRow, to email: String) -> UUID {
        guard let number = row.id else {
            return id("notice", row.defect.record, row.action, row.time, row.user, email)
        }
        return id("notice of history", row.defect.record, number, email)
    }
}
