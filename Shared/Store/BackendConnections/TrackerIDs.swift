internal import Essentials
package import FoundationEssentials

/// Deterministic ids of objects that are created from a tracker's records: equal for equal records.
package struct TrackerIDs: Equatable, Sendable {
    /// The namespace of the tracker's ids, derived from its server and its database.
    package let namespace: UUID

    /// The namespace of all trackers. It never changes.
    private static let all = UUID(
        uuid: (0x2C, 0x4E, 0x9A, 0x51, 0x7D, 0x0B, 0x4C, 0x36, 0x9E, 0x1F, 0x5A, 0x83, 0x6B, 0xD2, 0x40, 0xE7))

    /// - Parameters:
    ///   - server: The address of the server.
    ///   - repository: The repository of the database.
    package init(server: String, repository: String, database: String) {
        namespace = UUID(name: Self.name([server, repository, database]), in: Self.all)
    }

    /// Returns the id of a record's copies.
    package func defect(_ record: String) -> UUID { id("defect", record) }

    /// Returns the id of a list of texts in the tracker's namespace.
    package func id(_ parts: String...) -> UUID { UUID(name: Self.name(parts), in: namespace) }

    /// Joins texts without ambiguity: each is preceded by its length.
    private static func name(_ parts: [String]) -> String {
        parts.map { "\($0.utf8.count):\($0)" }.joined()
    }
}

extension DefectTracker {
    /// The ids of objects created from the tracker's records.
    package var ids: TrackerIDs { TrackerIDs(server: serverURL, repository: repository, database: database) }
}
