internal import BackendHTTP
internal import BackendProtocol

extension BackendRecords {
    /// Makes records of rows. A row that is none is unreadable, as are those that could not be decoded.
    ///
    /// - Parameters:
    ///   - list: What the back end calls the list of rows.
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
