import Model
import ObjectStore
import Postgres

/// Tracks the position of the latest change of each realm in the change log, so that a person's changes are detected
/// without reading all their objects.
struct ChangeTracker {
    /// Maximum number of realms per environment; beyond it, tracking restarts.
    private static let realmCountMax = 100_000
    /// Maximum number of change-log pointers per read.
    private static let pageCountMax: Int64 = 10_000

    private struct TrackedEnvironment {
        /// The position up to which the log was read.
        var position: Int64
        var newest: [Int32: Int64] = [:]
    }

    private let kinds: [Kind]
    private var environments: [EnvironmentID: TrackedEnvironment] = [:]

    init(of kinds: [Kind]) { self.kinds = kinds }

    /// Reads the change log to its end.
    ///
    /// - Returns: False if tracking (re)starts here, so that earlier changes are unknown.
    mutating func follow(_ environment: EnvironmentID, on connection: inout Connection) throws -> Bool {
        while let tracked = environments[environment], tracked.newest.count < Self.realmCountMax {
            let statements = [page(of: environment, after: tracked.position), Self.positions(of: environment)]
            let results = try connection.run(statements)
            // Compaction moves the floor before it removes anything.
            guard let (_, floor) = try results[1].first?.decode(Int64.self, Int64.self), floor <= tracked.position
            else {
                break
            }
            var (count, reached) = (Int64(0), tracked.position)
            for (realm, newest, last, changeCount) in try results[0].decode(
                Int32.self, Int64?.self, Int64.self, Int64.self)
            {
                if let newest { environments[environment]?.newest[realm] = newest }
                reached = max(reached, last)
                count += changeCount
            }
            environments[environment]?.position = reached
            if count < Self.pageCountMax { return true }
        }
        environments[environment] = nil
        if let (position, _) = try connection.run(Self.positions(of: environment)).first?.decode(Int64.self, Int64.self)
        {
            environments[environment] = TrackedEnvironment(position: position)
        }
        return false
    }

    /// Returns whether one of the realms was changed after a position.
    func hasChanged(_ realms: [Int32], since position: Int64, in environment: EnvironmentID) -> Bool {
        guard let tracked = environments[environment] else { return true }
        return realms.contains { tracked.newest[$0] ?? 0 > position }
    }

    /// Rows: position, compacted_position.
    private static func positions(of environment: EnvironmentID) -> Statement {
        "SELECT position, compacted_position FROM realm.environment WHERE id = \(environment.rawValue)"
    }

    /// Rows: realm, the newest position of the tracked kinds, the newest of all kinds, count.
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
