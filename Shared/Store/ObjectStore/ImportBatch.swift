package import Model
package import Postgres

/// External objects to be stored unconditionally.
///
/// They have no preconditions: the last of concurrent writes of an object wins, as with an integration's put. One
/// statement compares them with the stored objects and reserves positions for the changed ones: unchanged objects use
/// no positions, and a batch without changes does not take the counter's lock.
package struct ImportBatch: Sendable {
    package let environment: EnvironmentID
    private var objects: [(key: ObjectKey, fields: CanonicalJSON)] = []
    private var indexes: [ObjectKey: Int] = [:]

    package init(environment: EnvironmentID, capacity: Int = 0) {
        self.environment = environment
        objects.reserveCapacity(capacity)
        indexes.reserveCapacity(capacity)
    }

    /// Adds an object as an edit; replaces the fields of an object that is already in the batch.
    package mutating func put(_ key: ObjectKey, _ fields: CanonicalJSON) {
        if let index = indexes[key] {
            objects[index].fields = fields
        } else {
            indexes[key] = objects.count
            objects.append((key, fields))
        }
    }

    /// The statement that stores the objects. One row: the number of written objects, and how many of them are new.
    ///
    /// If nothing is written, decision 0 of the transaction is marked as conflicted, so that dependent statements, such
    /// as an audit record, have no effect.
    package var statement: Statement {
        var keys = ObjectKeyColumns()
        var fields = BinaryArray(of: CanonicalJSON.self, capacity: objects.reduce(0) { $0 + $1.fields.bytes.count + 4 })
        for object in objects {
            keys.append(object.key)
            fields.append(object.fields)
        }
        return Self.statement(environment, keys, fields)
    }

    private static func statement(
        _ environment: EnvironmentID, _ keys: ObjectKeyColumns, _ fields: BinaryArray
    ) -> Statement {
        """
        WITH d AS MATERIALIZED (
            SELECT i.realm_id, i.kind, i.id, i.fields, o.id IS NULL AS is_new, row_number() OVER (ORDER BY i.n) AS n
            FROM unnest(\(keys.realms), \(keys.kinds), \(keys.ids), \(fields))
                WITH ORDINALITY AS i(realm_id, kind, id, fields, n)
            LEFT JOIN LATERAL (
                SELECT o.id, o.fields FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = i.realm_id
                    AND o.kind = i.kind AND o.id = i.id
                OFFSET 0
            ) o ON true
            WHERE o.fields IS DISTINCT FROM i.fields
        ), b AS (
            UPDATE realm.environment SET position = position + (SELECT count(*) FROM d)
            WHERE id = \(environment.rawValue) AND EXISTS (SELECT FROM d)
            RETURNING position - (SELECT count(*) FROM d) AS p
        ), w AS (
            INSERT INTO store.object AS o
                (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
            SELECT \(environment.rawValue), realm_id, kind, id, p + n, 0, p + n, false, fields
            FROM d, b ORDER BY realm_id, kind, id
            ON CONFLICT (environment_id, realm_id, kind, id) DO UPDATE SET
                position = excluded.position, edit_position = excluded.edit_position, deleted = false,
                fields = excluded.fields
            WHERE o.fields IS DISTINCT FROM excluded.fields
            RETURNING o.realm_id, o.kind, o.id, o.position
        ), c AS (
            INSERT INTO store.change (environment_id, position, realm_id, kind, id)
            SELECT \(environment.rawValue), position, realm_id, kind, id FROM w
        )
        SELECT count(*), (SELECT count(*) FROM d WHERE is_new),
            CASE WHEN count(*) = 0 THEN realm.miss(ARRAY[0]) END
        FROM w
        """
    }
}
