import FoundationEssentials
import NameBasedIDs

/// The ids of what is made of a tracker's records: the same records have the same ids, whoever reads them and however
/// often.
struct TrackerIDs: Equatable, Sendable {
    /// All of a tracker's ids are within its own, which is made of its server and its database.
    let namespace: UUID

    /// Of all trackers. It is never changed.
    private static let all = UUID(
        uuid: (0x2C, 0x4E, 0x9A, 0x51, 0x7D, 0x0B, 0x4C, 0x36, 0x9E, 0x1F, 0x5A, 0x83, 0x6B, 0xD2, 0x40, 0xE7))

    /// - Parameters:
    ///   - server: Its address.
    ///   - repository: The repository that the database is in.
    init(server: String, repository: String, database: String) {
        namespace = UUID(name: Self.name(server, repository, database), in: Self.all)
    }

    /// The id of a record's mirrors.
    func defect(_ record: String) -> UUID { UUID(name: Self.name("defect", record), in: namespace) }

    /// The id of a row of the history. Rows of one record that name the same action, user and second are one.
    func row(_ row: HistoryRow) -> UUID {
        UUID(name: Self.name("row", row.defect.record, row.action, row.time, row.user), in: namespace)
    }

    /// The id of the notice that tells a person of a row.
    ///
    /// - Parameter email: The person's e-mail address.
    func notice(of row: HistoryRow, to email: String) -> UUID {
        UUID(name: Self.name("notice", row.defect.record, row.action, row.time, email), in: namespace)
    }

    /// Texts as one text that no other texts make: each stands behind its length.
    private static func name(_ parts: String...) -> String {
        parts.map { "\($0.utf8.count):\($0)" }.joined()
    }
}
