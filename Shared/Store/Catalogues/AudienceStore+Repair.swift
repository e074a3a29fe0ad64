package import FoundationEssentials
package import Model
package import Postgres

/// What is believed of catalogues and of who has which, and is not so, is said as it is: `CatalogueReconciler` then
/// writes what should be, after the next comparison with the back end.
extension AudienceStore {
    /// The statements of one transaction by which people have no catalogue any more whose `User` object does not name
    /// the one that they are believed to have, or whose catalogue is not known; only where it is still so.
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

    /// The statements of one transaction by which catalogues hold what is there: a tree of the nodes that there are,
    /// each with a hash that no node has, so that those that should be there are compared with what they say.
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
