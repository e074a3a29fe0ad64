import Access
package import BackendProtocol
package import Essentials
package import FoundationEssentials
package import Model

/// What a person's realm holds, made from what the back end said. A pure function of it: the same answer gives the same
/// objects, so writing them again changes nothing.
package struct RealmContents: Sendable {
    /// Its catalogue is not known here: whose nodes are the same share one.
    package let user: User
    package let data: ReportingData
    /// Records of the back end as entries, by id.
    package let entries: [Identified<TimeEntry>]

    /// Namespaces of the ids made here.
    private static let catalogues = UUID(name: "catalogues", in: namespace)
    private static let records = UUID(name: "records", in: namespace)
    private static let namespace = UUID(
        uuid: (
            0x6b, 0x1f, 0x1a, 0x52, 0x3c, 0x0d, 0x4e, 0x8b, 0x9d, 0x0e, 0x2f, 0x4a, 0x77, 0x15, 0x60, 0xc4
        ))

    /// The id of a person's `User` object.
    package static func userID(of email: String) -> UUID { UUID(name: "user/\(email)", in: namespace) }

    /// The id of a person's `Poll` object, and of the one of `Poll.ofChanges`.
    package static func pollID(of email: String) -> UUID { UUID(name: "poll/\(email)", in: namespace) }

    /// The id of the entry that a record is of: the one its marker names, else one made from the record's own.
    package static func entryID(of record: BackendEntry, of email: String) -> UUID {
        record.marker.flatMap(EntryMarker.entry) ?? UUID(name: "\(email)/\(record.id)", in: records)
    }

    /// The lines of the entries' status logs, by id: a record's status is what it had when it was read.
    package let lines: [Identified<TimeEntryStatus>]

    /// - Parameters:
    ///   - name: The person's; what is before the `@` of the address when it is not known.
    ///   - readAt: When the records were read.
    package init(
        email: String, name: String? = nil, data: ReportingData, records: [BackendEntry], readAt: Timestamp
    ) {
        self.data = data
        user = User(
            email: email, name: name ?? People.defaultName(of: email),
            reportingTemplates: data.templates.map(\.id))
        // A poll makes no entries, and its many nodes need not be looked up.
        let lookup = records.isEmpty ? nil : ReportingData.Lookup(data)
        entries = records.compactMap { record in
            // What carries a marker came from a device: its entry exists, or was deleted on purpose.
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

    /// The id of a catalogue that is made for a tree.
    ///
    /// - Parameter number: 0, or more when catalogues that were made for it hold something else by now.
    package static func catalogueID(for tree: UUID, number: Int) -> UUID {
        UUID(name: "\(tree.text)/\(number)", in: catalogues)
    }
}

extension TimeEntry {
    /// The entry that a record was made elsewhere of.
    ///
    /// - Returns: `nil` for a record that stands for nothing of its own: superseded or cancelled.
    package init?(_ record: BackendEntry, in data: ReportingData.Lookup) {
        guard let status = EntryStatus(observed: record.status) else { return nil }
        let meaning = data.meaning(of: record.references)
        self.init(
            backendId: record.id, status: status, text: record.text, reportingTemplate: meaning.template,
            reporting: meaning.selections, timeType: .duration, entryDate: record.day,
            durationSeconds: record.durationSeconds)
    }
}
