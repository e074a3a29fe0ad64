import Model
import Postgres
import Realms

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

    private let kinds: [String]
    private var followed: [EnvironmentID: Followed] = [:]

    init(of kinds: [Kind]) { self.kinds = kinds.map(\.rawValue) }

    /// Reads on to the end of the log.
    ///
    /// - Returns: False when the following begins here: what was changed before is not known.
    mutating func follow(_ environment: EnvironmentID, on connection: inout Connection) throws -> Bool {
        while let known = followed[environment], known.newest.count < Self.realmCountMax {
            let statements = [page(of: environment, after: known.position), Self.place(of: environment)]
            let answers = try connection.run(statements)
            // Compaction moves the floor before it removes anything.
            guard answers[1].count == 1, try answers[1][0].value(1, as: Int64.self) <= known.position else { break }
            var (count, reached) = (Int64(0), known.position)
            for row in answers[0] {
                if let position: Int64 = try row.optional(1) {
                    followed[environment]?.newest[try row.value(0, as: Int32.self)] = position
                }
                reached = max(reached, try row.value(2))
                count += try row.value(3, as: Int64.self)
            }
            followed[environment]?.position = reached
            if count < Self.pageCountMax { return true }
        }
        followed[environment] = nil
        let rows = try connection.run(Self.place(of: environment))
        if rows.count == 1 { followed[environment] = Followed(position: try rows[0].value(0)) }
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
            SELECT realm_id, kind, position FROM realm.change
            WHERE environment_id = \(environment.rawValue) AND position > \(position)
            ORDER BY position LIMIT \(Self.pageCountMax)
        ) c
        GROUP BY realm_id
        """
    }
}
