internal import BackendHTTP
internal import BackendProtocol

extension BackendRecords {
    /// Creates records from rows. Invalid and undecodable rows become ``unreadable``.
    ///
    /// - Parameters:
    ///   - list: The back end's name of the list.
    ///   - id: The back end's id of a row.
    init<Row>(
        _ rows: [Row], of list: String, _ unreadable: [UnreadableRecord], id: (Row) -> String?,
        _ entry: (Row) throws(BackendError) -> BackendEntry
    ) {
        self.init(entries: [], unreadable: unreadable)
        for row in rows {
            do throws(BackendError) {
                entries.append(try entry(row))
            } catch {
                self.unreadable.append(UnreadableRecord(list: list, id: id(row), reason: error.reason))
            }
        }
    }
}
