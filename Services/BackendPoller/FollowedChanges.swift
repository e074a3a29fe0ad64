import Model
import ObjectStore
import Postgres

/// Where each realm was last changed, by the change log, since a worker began to follow it: whether anything of a
/// person is new is known without reading all that the person has.
struct FollowedChanges {
    /// Realms remembered of an environment; then it is followed anew.
    private static let realmCountMax = 100_000
    /// Pointers read at a time.
    private static let pageCountMax: Int64 = 10_000

    private struct Followed {
        /// Up to where the log was read.
        var position: Int64
        var newest: [Int32: Int64] = [:]
    }

    private let kinds: [Kind]
    private var followed: [EnvironmentID: Followed] = [:]

    init(of kinds: [Kind]) { self.kinds = kinds }

    /// Reads on to the end of the log.
    ///
    /// - Returns: False when the following begins here: what was changed before is not known.
    mutating func follow(_ environment: EnvironmentID, on connection: inout Connection) throws -> Bool {
        while let known = followed[environment], known.newest.count < Self.realmCountMax {
            let statements = [page(of: environment, after: known.position), Self.place(of: environment)]
            let answers = try connection.run(statements)
            // Compaction moves the floor before it removes anything.
            guard let (_, floor) = try answers[1].first?.decode(Int64.self, Int64.self), floor <= known.position else {
                break
            }
            var (count, reached) = (Int64(0), known.position)
            for (realm, newest, last, changeCount) in try answers[0].decode(
                Int32.self, Int64?.self, Int64.self, Int64.self)
            {
                if let newest { followed[environment]?.newest[realm] = newest }
                reached = max(reached, last)
                count += changeCount
            }
            followed[environment]?.position = reached
            if count < Self.pageCountMax { return true }
        }
        followed[environment] = nil
        if let (position, _) = try connection.run(Self.place(of: environment)).first?.decode(Int64.self, Int64.self) {
            followed[environment] = Followed(position: position)
        }
        return false
    }

    /// Whether one of the realms was changed after a position that is known to have been its newest, or later.
    func hasChanged(_ realms: [Int32], since position: Int64, in environment: EnvironmentID) -> Bool {
        guard let known = followed[environment] else { return true }
        return realms.contains { known.newest[$0] ?? 0 > position }
    }

    /// Rows: position, compacted_position.
    private static func place(of environment: EnvironmentID) -> Statement {
        "SELECT position, compacted_position FROM realm.environment WHERE id = \(environment.rawValue)"
    }

    /// Rows: realm, the newest position of the kinds that count, the newest of all, how many.
    private func page(of environment: EnvironmentID, after position: Int64) -> Statement {
        """
        SELECT realm_id, max(position) FILTER (WHERE kind = ANY (\(kinds))), max(position), count(*)
        FROM (
            SELECT realm_id, kind, position FROM store.change
            WHERE environment_id = \(environment.rawValue) AND position > \(position)
            ORDER BY position LIMIT \(Self.pageCountMax)
        ) c
        GROUP BY realm_id
        """
    }
}
