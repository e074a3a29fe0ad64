package import FoundationEssentials
package import Model
package import Postgres

/// SQL statements that correct the stored assignment of catalogues. `CatalogueReconciler` then writes the correct nodes
/// after the next comparison with the back end.
extension AudienceStore {
    /// Returns the statements of one transaction that remove the assignment of people whose `User` object refers to
    /// another catalogue, or whose catalogue is unknown, if that is still the case.
    package static func unplace(_ emails: [String], in environment: EnvironmentID) -> [Statement] {
        [
            lock(environment),
            """
            UPDATE audience.person p SET catalogue = NULL
            WHERE p.environment_id = \(environment.rawValue) AND p.email = ANY (\(emails)) AND NOT EXISTS (
                SELECT FROM audience.catalogue c
                JOIN realm.realm r ON r.environment_id = c.environment_id AND r.path = '/users/' || p.email
                JOIN store.object o ON o.environment_id = c.environment_id AND o.realm_id = r.id
                    AND o.kind = \(Kind.user) AND NOT o.deleted
                WHERE c.environment_id = p.environment_id AND c.id = p.catalogue
                    AND lower(o.fields::json->>'catalogue') = c.id::text)
            """,
        ]
    }

    /// Returns the statements of one transaction that set the trees of catalogues to their actual nodes, each with an
    /// invalid hash, so that the next comparison rewrites them.
    package static func recount(_ catalogues: [UUID], in environment: EnvironmentID) -> [Statement] {
        [
            lock(environment),
            """
            WITH found AS MATERIALIZED (
                SELECT c.id, gen_random_uuid() AS digest, coalesce((
                        SELECT string_agg(uuid_send(o.id) || decode(repeat('00', 16), 'hex'), '' ORDER BY o.id)
                        FROM realm.realm r JOIN store.object o ON o.environment_id = r.environment_id
                            AND o.realm_id = r.id AND o.kind = \(Kind.reportingTreeNode) AND NOT o.deleted
                        WHERE r.environment_id = c.environment_id AND r.path = '/catalogues/' || c.id
                    ), '') AS digests
                FROM audience.catalogue c
                WHERE c.environment_id = \(environment.rawValue) AND c.id = ANY (\(catalogues))
            ), tree AS (
                INSERT INTO audience.tree (environment_id, digest, digests, nodes)
                SELECT \(environment.rawValue), digest, digests, '{}' FROM found
            )
            UPDATE audience.catalogue c SET tree = f.digest FROM found f
            WHERE c.environment_id = \(environment.rawValue) AND c.id = f.id
            """,
        ]
    }

    private static func lock(_ environment: EnvironmentID) -> Statement {
        "SELECT FROM realm.environment WHERE id = \(environment.rawValue) FOR UPDATE"
    }
}
