import Model
import ObjectStore
import Postgres

/// Repairs `blob.reference`, whose rows are written by the triggers of `019-blobs.sql`.
enum ImageReferences {
    /// Returns statements that rewrite the references of these objects, under the lock of the environment's counter.
    static func write(_ keys: [ObjectKey], in environment: EnvironmentID) -> [Statement] {
        let named: Statement = """
            SELECT o.realm_id, o.kind, o.id, blob.named(o.kind, o.fields) AS blob_id
            FROM unnest(\(keys.map(\.realm)), \(keys.map(\.kind)), \(keys.map(\.id))) AS i(realm_id, kind, id)
            CROSS JOIN LATERAL (
                SELECT * FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = i.realm_id
                    AND kind = i.kind AND id = i.id
                OFFSET 0
            ) o
            """
        return [
            "SELECT FROM realm.environment WHERE id = \(environment.rawValue) FOR UPDATE",
            """
            DELETE FROM blob.reference b
            USING unnest(\(keys.map(\.realm)), \(keys.map(\.kind)), \(keys.map(\.id))) AS i(realm_id, kind, id)
            WHERE b.environment_id = \(environment.rawValue) AND b.realm_id = i.realm_id AND b.kind = i.kind
                AND b.id = i.id AND NOT EXISTS (
                    SELECT FROM (\(named)) n WHERE n.realm_id = b.realm_id AND n.kind = b.kind AND n.id = b.id
                        AND n.blob_id = b.blob_id)
            """,
            """
            INSERT INTO blob.reference (environment_id, realm_id, kind, blob_id, id)
            SELECT \(environment.rawValue), n.realm_id, n.kind, n.blob_id, n.id FROM (\(named)) n
            WHERE n.blob_id IS NOT NULL ON CONFLICT DO NOTHING
            """,
        ]
    }
}
