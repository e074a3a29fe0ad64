import Access
package import BackendProtocol
package import Essentials
package import FoundationEssentials
package import Model

/// The objects of a person's realm, derived from the back end's data. The derivation is a pure function: equal data
/// gives equal objects, so that writing them again changes nothing.
package struct RealmContents: Sendable {
    /// The user without a catalogue: people with the same nodes share one, which is assigned later.
    package let user: User
    package let data: ReportingData
    /// Records of the back end as entries, by id.
    package let entries: [Identified<TimeEntry>]

    /// Namespaces of the derived ids.
    private static let catalogues = UUID(name: "catalogues", in: namespace)
    private static let records = UUID(name: "records", in: namespace)
    private static let namespace = UUID(
        uuid: (
            0x6b, 0x1f, 0x1a, 0x52, 0x3c, 0x0d, 0x4e, 0x8b, 0x9d, 0x0e, 0x2f, 0x4a, 0x77, 0x15, 0x60, 0xc4
        ))

    /// Returns the id of a person's `User` object.
    package static func userID(of email: String) -> UUID { UUID(name: "user/\(email)", in: namespace) }

    /// Returns the id of a person's `Poll` object, or of that of `Poll.changesPerson`.
    package static func pollID(of email: String) -> UUID { UUID(name: "poll/\(email)", in: namespace) }

    /// Returns the id of a record's entry: the one of its marker, otherwise one derived from the record's id.
    package static func entryID(of record: BackendEntry, of email: String) -> UUID {
        record.marker.flatMap(EntryMarker.entry) ?? UUID(name: "\(email)/\(record.id)", in: records)
    }

    /// The lines of the entries' status logs by id: the statuses at the time of the read.
    package let lines: [Identified<TimeEntryStatus>]

    /// - Parameters:
    ///   - name: The person's name; by default the local part of the address.
    ///   - readAt: The time of the read.
    package init(
        email: String, name: String? = nil, data: ReportingData, records: [BackendEntry], readAt: Timestamp
    ) {
        self.data = data
        user = User(
            email: email, name: name ?? People.defaultName(of: email),
            reportingTemplates: data.templates.map(\.id))
        // A poll creates no entries, so its many nodes need no index.
        let lookup = records.isEmpty ? nil : ReportingData.Lookup(data)
        entries = records.compactMap { record in
            // A record with a marker was created by a device: its entry exists, or was deleted on purpose.
            guard let lookup, record.marker == nil, var entry = TimeEntry(record, in: lookup) else { return nil }
            entry.statusAt = readAt
            return Identified(id: Self.entryID(of: record, of: email), fields: entry)
        }
        let messages = Dictionary(records.map { ($0.id, $0.message) }) { first, _ in first }
        lines = entries.map { entry in
            Identified(
                id: UUID(name: "read", in: entry.id),
                fields: TimeEntryStatus(
                    entry: entry.id, status: entry.fields.status, timestamp: readAt,
                    message: entry.fields.backendId.flatMap { messages[$0] ?? nil }))
        }
    }

    /// Returns the id of a catalogue that is created for a tree.
    ///
    /// - Parameter number: 0, or more if earlier catalogues of the tree have another one meanwhile.
    package static func catalogueID(for tree: UUID, number: Int) -> UUID {
        UUID(name: "\(tree.text)/\(number)", in: catalogues)
    }
}

extension TimeEntry {
    /// Creates an entry from a record that was created elsewhere.
    ///
    /// - Returns: `nil` for a superseded or cancelled record.
    package init?(_ record: BackendEntry, in data: ReportingData.Lookup) {
        guard let status = EntryStatus(observed: record.status) else { return nil }
        let meaning = data.meaning(of: record.references)
        self.init(
            backendId: record.id, status: status, text: record.text, reportingTemplate: meaning.template,
            reporting: meaning.selections, timeType: .duration, entryDate: record.day,
            durationSeconds: record.durationSeconds)
    }
}
