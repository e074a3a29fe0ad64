package import Model
package import Postgres

/// Repairs the change log: objects without a pointer, and pointers without an object.
package enum LostPointers {
    /// Returns the statements of one transaction that give objects without a pointer a new position and a pointer, so
    /// that the relay and devices process them, and that delete pointers without an object. Both verify the condition
    /// again.
    ///
    /// - Parameter objects: Objects with their position, or that of the pointer.
    package static func write(
        _ objects: [(key: ObjectKey, position: Int64)], in environment: EnvironmentID
    ) -> [Statement] {
        let (realms, kinds) = (objects.map(\.key.realm), objects.map(\.key.kind))
        let (ids, positions) = (objects.map(\.key.id), objects.map(\.position))
        let count = Int64(objects.count)
        return [
            "UPDATE realm.environment SET position = position + \(count) WHERE id = \(environment.rawValue)",
            """
            WITH moved AS (
                UPDATE store.object o SET position = e.position - \(count) + i.n
                FROM unnest(\(realms), \(kinds), \(ids), \(positions)) WITH ORDINALITY
                    AS i(realm_id, kind, id, position, n), realm.environment e
                WHERE e.id = \(environment.rawValue) AND o.environment_id = e.id AND o.realm_id = i.realm_id
                    AND o.kind = i.kind AND o.id = i.id AND o.position = i.position AND NOT EXISTS (
                        SELECT FROM store.change c WHERE c.environment_id = e.id AND c.position = o.position
                            AND c.realm_id = o.realm_id AND c.kind = o.kind AND c.id = o.id)
                RETURNING o.realm_id, o.kind, o.id, o.position
            )
            INSERT INTO store.change (environment_id, realm_id, position, kind, id)
            SELECT \(environment.rawValue), realm_id, position, kind, id FROM moved
            """,
            """
            DELETE FROM store.change c
            USING unnest(\(realms), \(kinds), \(ids), \(positions)) AS i(realm_id, kind, id, position)
            WHERE c.environment_id = \(environment.rawValue) AND c.position = i.position AND c.realm_id = i.realm_id
                AND c.kind = i.kind AND c.id = i.id AND NOT EXISTS (
                    SELECT FROM store.object o WHERE o.environment_id = c.environment_id AND o.realm_id = c.realm_id
                        AND o.kind = c.kind AND o.id = c.id AND o.position >= c.position)
            """,
        ]
    }
}
