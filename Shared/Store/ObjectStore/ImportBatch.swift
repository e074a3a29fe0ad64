package import Model
package import Postgres

/// Whole objects that come from outside, to be stored as they are.
///
/// They are no decisions, so they have no guards: of two that write the same object the later one stands, as with an
/// integration's put. One statement compares them with what is stored, and then reserves positions for those that
/// differ: what is so already uses no position, and a batch in which nothing differs does not take the counter's lock.
package struct ImportBatch: Sendable {
    private struct Key: Hashable {
        let realm: Int32
        let kind: Int16
        let id: UUIDValue
    }

    package let environment: EnvironmentID
    private var objects: [(key: ObjectKey, fields: CanonicalJSON)] = []
    private var places: [Key: Int] = [:]

    package init(environment: EnvironmentID, capacity: Int = 0) {
        self.environment = environment
        objects.reserveCapacity(capacity)
        places.reserveCapacity(capacity)
    }

    /// How many objects are in it.
    package var count: Int { objects.count }

    /// Adds an object, as an edit. One that is in the batch gets these fields.
    package mutating func put(_ key: ObjectKey, _ fields: CanonicalJSON) {
        let place = Key(realm: key.realm, kind: key.kind.number, id: key.id)
        if let index = places[place] {
            objects[index].fields = fields
        } else {
            places[place] = objects.count
            objects.append((key, fields))
        }
    }

    /// The statement that stores them. One row: how many were written, and how many of them were not there.
    ///
    /// When nothing is written, decision 0 of the transaction is missed: what is told of the writing, such as an audit
    /// record, is not told then.
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
