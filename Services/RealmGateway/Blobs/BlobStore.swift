import Access
import FoundationEssentials
import Model
import Postgres

/// Blobs in `blob.content`; triggers of `store.object` maintain their references in `blob.reference`.
///
/// The functions throw `PostgresError`.
struct BlobStore: Sendable {
    let pool: Pool
    /// Maximum number of one person's blobs that no object refers to. Integrations, which administrators add, have no
    /// limit: each new version of a result leaves an earlier one unreferenced.
    let unreferencedCountMax: Int64

    /// Number of a caller's newest blobs among which the unreferenced ones are counted; older ones are removed by age.
    private static let countedMax: Int64 = 1_000
    /// Maximum number of realms with references to a blob that are checked, in the order of their numbers.
    private static let realmCountMax: Int64 = 1_000

    /// Stores a blob; it is durable on return. Idempotent.
    func add(_ blob: Blob, by caller: Caller) async throws -> BlobAddition {
        let statements = [lock(caller), state(of: blob, caller), insert(blob, caller), state(of: blob, caller)]
        return try await pool.run { connection in
            let results = try connection.run(statements)
            let (before, _) = try results[1][0].decode(Bool?.self, Bool.self)
            if results[2].count > 0 { return before == nil ? .added : .exists }
            let (isSame, isReferenced) = try results[3][0].decode(Bool?.self, Bool.self)
            return isSame == false ? .conflict : isReferenced ? .referenced : .limitReached
        }
    }

    /// Serialises one caller's uploads, so that the limit holds.
    private func lock(_ caller: Caller) -> Statement {
        "SELECT pg_advisory_xact_lock(\(caller.environment.rawValue), \(caller.id))"
    }

    /// Row: whether the stored blob has the same bytes (null: there is none), whether an object refers to the id.
    private func state(of blob: Blob, _ caller: Caller) -> Statement {
        """
        SELECT (
            SELECT digest IN (\(Bytea(blob.digest)), \(Bytea(blob.sentDigest))) FROM blob.content
            WHERE environment_id = \(caller.environment.rawValue) AND id = \(blob.id)
        ), EXISTS (
            SELECT FROM blob.reference WHERE environment_id = \(caller.environment.rawValue) AND blob_id = \(blob.id))
        """
    }

    /// Inserts the blob, unless an object already refers to its id: every reader of the object has the id and could
    /// claim it. A repeated upload renews its age. Row: the blob is stored.
    private func insert(_ blob: Blob, _ caller: Caller) -> Statement {
        """
        INSERT INTO blob.content AS c (environment_id, id, uploader, type, digest, bytes)
        SELECT \(caller.environment.rawValue), \(blob.id), \(caller.id), \(blob.type.mediaType), \(Bytea(blob.digest)),
            \(Bytea(blob.bytes))
        WHERE EXISTS (
            SELECT FROM blob.content WHERE environment_id = \(caller.environment.rawValue) AND id = \(blob.id)
        ) OR NOT EXISTS (
            SELECT FROM blob.reference WHERE environment_id = \(caller.environment.rawValue) AND blob_id = \(blob.id)
        ) AND (
            SELECT count(*) FROM (
                SELECT id FROM blob.content
                WHERE environment_id = \(caller.environment.rawValue) AND uploader = \(caller.id)
                ORDER BY uploaded_at DESC LIMIT \(Self.countedMax)
            ) own
            WHERE NOT EXISTS (
                SELECT FROM blob.reference r
                WHERE r.environment_id = \(caller.environment.rawValue) AND r.blob_id = own.id)
        ) < \(caller.own == nil ? Int64.max : unreferencedCountMax)
        ON CONFLICT (environment_id, id) DO UPDATE SET uploaded_at = excluded.uploaded_at
        WHERE c.digest IN (excluded.digest, \(Bytea(blob.sentDigest)))
        RETURNING id
        """
    }

    /// - Returns: `nil` if no blob in the caller's environment has this id.
    func find(_ id: UUID, for caller: Caller) async throws -> StoredBlob? {
        let environment = caller.environment.rawValue
        let content: Statement = """
            SELECT type, digest, uploader FROM blob.content WHERE environment_id = \(environment) AND id = \(id)
            """
        let realms: Statement = """
            SELECT r.path FROM (
                SELECT DISTINCT realm_id FROM blob.reference
                WHERE environment_id = \(environment) AND blob_id = \(id)
                ORDER BY realm_id LIMIT \(Self.realmCountMax)
            ) n JOIN realm.realm r ON r.environment_id = \(environment) AND r.id = n.realm_id
            """
        return try await pool.run { connection in
            let results = try connection.run([content, realms])
            guard let row = results[0].first,
                case let (name, digest, uploader) = try row.decode(String.self, Bytea.self, Int32.self),
                let type = BlobType(mediaType: name)
            else { return nil }
            let paths = try results[1].decode(String.self)
            return StoredBlob(
                type: type, digest: digest.bytes, uploader: uploader, isReferenced: !paths.isEmpty,
                realms: paths.compactMap { RealmPath($0) })
        }
    }

    /// - Returns: `nil` if there is none: it may have been removed since ``find(_:for:)``.
    func bytes(of id: UUID, in environment: EnvironmentID) async throws -> [UInt8]? {
        try await pool.run { connection in
            try connection.run(
                """
                SELECT bytes FROM blob.content WHERE environment_id = \(environment.rawValue) AND id = \(id)
                """
            ).first?.decode(Bytea.self).bytes
        }
    }
}
