package import Model

extension SeenRecord {
    /// Creates the stored form of a record.
    package init(_ entry: BackendEntry) {
        self.init(
            backendId: entry.id, marker: entry.marker, day: entry.day, durationSeconds: entry.durationSeconds,
            text: entry.text, status: entry.status.rawValue, references: entry.references, message: entry.message,
            version: entry.version)
    }
}

extension BackendEntry {
    /// Restores a record from its stored form; `nil` if a newer service wrote a status that this version does not have.
    package init?(_ record: SeenRecord) {
        guard let status = BackendStatus(rawValue: record.status) else { return nil }
        self.init(
            id: record.backendId, marker: record.marker, day: record.day, durationSeconds: record.durationSeconds,
            text: record.text, status: status, references: record.references, message: record.message,
            version: record.version)
    }
}

extension EntryStatus {
    /// Maps the status of a record to the status of its entry; `nil` for a superseded or cancelled record.
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
