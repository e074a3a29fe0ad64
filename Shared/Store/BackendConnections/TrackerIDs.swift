internal import Essentials
package import FoundationEssentials

/// The ids of what is made of a tracker's records: the same records have the same ids, whoever reads them and however
/// often.
package struct TrackerIDs: Equatable, Sendable {
    /// All of a tracker's ids are within its own, which is made of its server and its database.
    package let namespace: UUID

    /// Of all trackers. It is never changed.
    private static let all = UUID(
        uuid: (0x2C, 0x4E, 0x9A, 0x51, 0x7D, 0x0B, 0x4C, 0x36, 0x9E, 0x1F, 0x5A, 0x83, 0x6B, 0xD2, 0x40, 0xE7))

    /// - Parameters:
    ///   - server: Its address.
    ///   - repository: The repository that the database is in.
    package init(server: String, repository: String, database: String) {
        namespace = UUID(name: Self.name([server, repository, database]), in: Self.all)
    }

    /// The id of a record's mirrors.
    package func defect(_ record: String) -> UUID { id("defect", record) }

    /// The id that texts always have within the tracker's.
    package func id(_ parts: String...) -> UUID { UUID(name: Self.name(parts), in: namespace) }

    /// Texts as one text that no other texts make: each stands behind its length.
    private static func name(_ parts: [String]) -> String {
        parts.map { "\($0.utf8.count):\($0)" }.joined()
    }
}

extension DefectTracker {
    /// The ids of what is made of its records.
    package var ids: TrackerIDs { TrackerIDs(server: serverURL, repository: repository, database: database) }
}
