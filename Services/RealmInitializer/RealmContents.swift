import Backends
import FoundationEssentials
import Model

/// What a person's realm begins with, made from what the back end said. A pure function of it: the same answer gives
/// the same objects, so running it again writes nothing.
struct RealmContents: Sendable {
    let catalogue: UUID
    let user: User
    let data: ReportingData
    /// Records of the back end as entries, by id.
    let entries: [Identified<TimeEntry>]

    /// Namespaces of the ids made here.
    private static let catalogues = UUID(name: "catalogues", in: namespace)
    private static let records = UUID(name: "records", in: namespace)
    private static let namespace = UUID(
        uuid: (
            0x6b, 0x1f, 0x1a, 0x52, 0x3c, 0x0d, 0x4e, 0x8b, 0x9d, 0x0e, 0x2f, 0x4a, 0x77, 0x15, 0x60, 0xc4
        ))

    /// The id of a person's `User` object.
    static func userID(of email: String) -> UUID { UUID(name: "user/\(email)", in: namespace) }

    init(email: String, data: ReportingData, records: [BackendEntry]) {
        self.data = data
        catalogue = Self.catalogue(of: data.nodes.map(\.id))
        user = User(
            email: email, name: String(email.prefix { $0 != "@" }), catalogue: catalogue,
            reportingTemplates: data.templates.map(\.id))
        entries = records.compactMap { record in
            // What carries a marker came from a device: its entry exists, or was deleted on purpose.
            guard record.marker == nil, let status = EntryStatus(observed: record.status) else { return nil }
            return Identified(
                id: UUID(name: "\(email)/\(record.id)", in: Self.records),
                fields: TimeEntry(
                    backendId: record.id, status: status, text: record.text,
                    reportingTemplate: data.templates.first?.id, reporting: data.selections(for: record.references),
                    timeType: .duration, entryDate: record.day, durationSeconds: record.durationSeconds,
                    createdOn: record.day))
        }
    }

    /// People who may report on the same nodes share a catalogue: it is named by what is in it.
    static func catalogue(of nodes: [UUID]) -> UUID {
        UUID(name: nodes.map(\.text).sorted().joined(separator: ","), in: catalogues)
    }
}

extension EntryStatus {
    /// - Returns: `nil` for a record that stands for nothing of its own: superseded or cancelled.
    init?(observed status: BackendStatus) {
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
