package import Model

extension SeenRecord {
    /// The record as an object.
    package init(_ entry: BackendEntry) {
        self.init(
            backendId: entry.id, marker: entry.marker, day: entry.day, durationSeconds: entry.durationSeconds,
            text: entry.text, status: entry.status.rawValue, references: entry.references, message: entry.message,
            version: entry.version)
    }
}

extension BackendEntry {
    /// The record as it was seen; `nil` when a newer service wrote a status that this one does not know.
    package init?(_ record: SeenRecord) {
        guard let status = BackendStatus(rawValue: record.status) else { return nil }
        self.init(
            id: record.backendId, marker: record.marker, day: record.day, durationSeconds: record.durationSeconds,
            text: record.text, status: status, references: record.references, message: record.message,
            version: record.version)
    }
}

extension EntryStatus {
    /// - Returns: `nil` for a record that stands for nothing of its own: superseded or cancelled.
    package init?(observed status: BackendStatus) {
        switch status {
        case .inProcess: self = .draft
        case .released: self = .released
        case .approved: self = .approved
        case .rejected: self = .rejected
        case .recorded: self = .recorded
        case .changed, .cancelled: return nil
        }
    }
}
