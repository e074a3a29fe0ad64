import Model
import Postgres

/// The rows of one writing statement as arrays for `unnest`.
struct WriteColumns {
    private var keys = ObjectKeyColumns()
    private var fields = BinaryArray(of: CanonicalJSON.self)
    private var decisions = BinaryArray(of: Int32.self)
    private var edits = BinaryArray(of: Bool.self)
    private var ordinals = BinaryArray(of: Int32.self)
    private(set) var count = 0

    mutating func append(_ key: ObjectKey, _ json: CanonicalJSON?, _ decision: Int32, _ isEdit: Bool, ordinal: Int) {
        keys.append(key)
        fields.append(json)
        decisions.append(decision)
        edits.append(isEdit)
        ordinals.append(Int32(ordinal))
        count += 1
    }

    // Both statements insert a pointer for each change, and skip unchanged objects. `b.p` is the position before the
    // first reserved one.
    //
    // A deletion is an insert that always conflicts, so that the object is looked up by its complete key, independent
    // of statistics. An UPDATE … FROM is a join, which, without statistics of the environment, read all of it under the
    // counter's lock.

    func put(_ environment: EnvironmentID, _ total: Int64, _ traceparents: Traceparents) -> Statement {
        """
        WITH b AS (
            SELECT position - \(total) AS p FROM realm.environment WHERE id = \(environment.rawValue)
        ), i AS (
            SELECT * FROM unnest(\(keys.realms), \(keys.kinds), \(keys.ids), \(fields), \(decisions), \(edits),
                    \(ordinals))
                AS i(realm_id, kind, id, fields, decision, is_edit, n)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
        ), w AS (
            INSERT INTO store.object AS o
                (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
            SELECT \(environment.rawValue), realm_id, kind, id, p + n, 0, CASE WHEN is_edit THEN p + n ELSE 0 END,
                false, fields
            FROM i, b ORDER BY realm_id, kind, id
            ON CONFLICT (environment_id, realm_id, kind, id) DO UPDATE SET
                position = excluded.position, edit_position = greatest(o.edit_position, excluded.edit_position),
                deleted = false, fields = excluded.fields
            WHERE o.fields IS DISTINCT FROM excluded.fields
            RETURNING o.realm_id, o.kind, o.id, o.position
        ), c AS (
            INSERT INTO store.change (environment_id, position, realm_id, kind, id, traceparent)
            SELECT \(environment.rawValue), position, realm_id, kind, id, \(traceparents.expression) FROM w, b
        )
        SELECT (position - p)::int, position FROM w, b
        """
    }

    func delete(_ environment: EnvironmentID, _ total: Int64, _ traceparents: Traceparents) -> Statement {
        """
        WITH b AS (
            SELECT position - \(total) AS p FROM realm.environment WHERE id = \(environment.rawValue)
        ), i AS (
            SELECT i.realm_id, i.kind, i.id, i.is_edit, i.n, o.source_position, o.edit_position
            FROM unnest(\(keys.realms), \(keys.kinds), \(keys.ids), \(decisions), \(edits), \(ordinals))
                AS i(realm_id, kind, id, decision, is_edit, n)
            CROSS JOIN LATERAL (
                SELECT * FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = i.realm_id
                    AND o.kind = i.kind AND o.id = i.id
                OFFSET 0
            ) o
            WHERE NOT o.deleted AND i.decision <> ALL ((SELECT realm.missed())::int[])
        ), w AS (
            INSERT INTO store.object AS o
                (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
            SELECT \(environment.rawValue), realm_id, kind, id, p + n, source_position,
                CASE WHEN is_edit THEN p + n ELSE edit_position END, true, NULL
            FROM i, b
            ON CONFLICT (environment_id, realm_id, kind, id) DO UPDATE SET
                position = excluded.position, edit_position = excluded.edit_position, deleted = true, fields = NULL
            RETURNING o.realm_id, o.kind, o.id, o.position
        ), c AS (
            INSERT INTO store.change (environment_id, position, realm_id, kind, id, traceparent)
            SELECT \(environment.rawValue), position, realm_id, kind, id, \(traceparents.expression) FROM w, b
        )
        SELECT (position - p)::int, position FROM w, b
        """
    }
}
