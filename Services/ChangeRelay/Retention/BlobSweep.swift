import Essentials
import FoundationEssentials
import ObjectStore
import Postgres

/// Removes images that no object refers to, if they were uploaded long ago.
struct BlobSweep: Sweep {
    /// Maximum number of blobs scanned per step.
    private static let pageCountMax: Int64 = 1_000
    /// Maximum number of blobs removed per step: each can have one megabyte.
    private static let countMax = 20

    let name = "images"
    let keep: Duration
    private var last = Key(environment: 0, id: .zero)

    private struct Key: Equatable {
        let environment: Int32
        let id: UUID
    }

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweepResult {
        // The table is created by `fieldpost migrate --finish`.
        guard let page = try connection.runIfTableExists(page()) else {
            return SweepResult(removedCount: 0, isLast: true)
        }
        let rows = try page.decode(Int32.self, UUID.self, Bool.self)
        let orphans = rows.filter(\.2).map { Key(environment: $0.0, id: $0.1) }
        guard let first = orphans.first else {
            last = rows.last.map { Key(environment: $0.0, id: $0.1) } ?? Key(environment: 0, id: .zero)
            return SweepResult(removedCount: 0, isLast: rows.isEmpty)
        }
        let gone = orphans.prefix { $0.environment == first.environment }.prefix(Self.countMax)
        let count = try remove(gone.map(\.id), in: first.environment, on: &connection)
        last = gone.last ?? first
        return SweepResult(removedCount: count, isLast: false)
    }

    /// Rows: environment, id, whether it is to be removed.
    private func page() -> Statement {
        """
        SELECT c.environment_id, c.id, c.uploaded_at < now() - make_interval(secs => \(keep.inSeconds)) AND NOT EXISTS (
            SELECT FROM blob.reference r WHERE r.environment_id = c.environment_id AND r.blob_id = c.id)
            AND EXISTS (SELECT FROM realm.environment e WHERE e.id = c.environment_id AND \(EnvironmentCounter.works))
        FROM (
            SELECT environment_id, id, uploaded_at FROM blob.content
            WHERE (environment_id, id) > (\(last.environment), \(last.id))
            ORDER BY environment_id, id LIMIT \(Self.pageCountMax)
        ) c
        ORDER BY c.environment_id, c.id
        """
    }

    /// Under the counter's lock no object can be written that refers to one of the blobs, so the condition stays true.
    /// A blob that was sent again meanwhile is recent, and stays.
    private func remove(_ ids: [UUID], in environment: Int32, on connection: inout Connection) throws -> Int {
        try connection.run([
            "SELECT FROM realm.environment WHERE id = \(environment) FOR NO KEY UPDATE",
            """
            DELETE FROM blob.content c
            WHERE c.environment_id = \(environment) AND c.id = ANY (\(ids))
                AND c.uploaded_at < now() - make_interval(secs => \(keep.inSeconds))
                AND NOT EXISTS (
                    SELECT FROM blob.reference r WHERE r.environment_id = \(environment) AND r.blob_id = c.id)
            """,
        ])[1].affectedCount
    }
}
