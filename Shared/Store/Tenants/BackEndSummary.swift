package import Postgres

/// The back ends of one kind, of all environments.
package struct BackEndSummary: Sendable {
    /// The kind in `backend.connection`, or ``trackerKind``.
    package let kind: String
    package let environmentCount: Int64
    /// Those of the requested environments that use it.
    package let environments: Set<String>

    /// The kind of defect trackers, which is not a name of an adapter.
    package static let trackerKind = "HCL Compass"

    /// Returns the summaries of the kinds that environments use, sorted by kind.
    ///
    /// - Parameter names: The requested environments.
    package static func all(of names: [String], on connection: inout Connection) throws -> [BackEndSummary] {
        try connection.run(
            """
            SELECT b.kind, count(*), coalesce(array_agg(e.name) FILTER (WHERE e.name = ANY (\(names))), '{}')
            FROM (
                SELECT environment_id, kind FROM backend.connection
                UNION ALL SELECT environment_id, \(trackerKind) FROM backend.defect_tracker
            ) b JOIN realm.environment e ON e.id = b.environment_id
            GROUP BY b.kind ORDER BY b.kind
            """
        ).decode(String.self, Int64.self, [String].self).map {
            BackEndSummary(kind: $0, environmentCount: $1, environments: Set($2))
        }
    }
}
