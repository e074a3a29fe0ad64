import BackendConnections
import FoundationEssentials

extension TrackerIDs {
    /// Returns the id of a row of the history, made from the tracker's row number. In a tracker without row numbers,
    /// rows of one record with the same action, user and second share an id.
    func row(_ row: HistoryRow) -> UUID {
        guard let number = row.id else { return rowWithoutID(row) }
        return id("history", row.defect.record, number)
    }

    /// Returns the id of a row as earlier releases made it, so that rows which they processed are not notified again.
    func rowWithoutID(_ row: HistoryRow) -> UUID { id("row", row.defect.record, row.action, row.time, row.user) }

    /// Returns the id of the notice for a row and a person.
    ///
    /// - Parameter email: The person's e-mail address.
    func notice(of row: HistoryRow, to email: String) -> UUID {
        guard let number = row.id else {
            return id("notice", row.defect.record, row.action, row.time, row.user, email)
        }
        return id("notice of history", row.defect.record, number, email)
    }
}
