package import Essentials
import FoundationEssentials
package import Model
package import Postgres

/// Copies of other objects, made 1:1 and written in one transaction.
///
/// A copy carries its source's position and takes only newer ones (law 3), so it needs no guard and no load before: a
/// repeat, in whatever order, does nothing. At or below the compaction floor a copy may be updated but not inserted:
/// the tombstone that would forbid it may be gone.
package struct CopyBatch: Sendable {
    package let environment: EnvironmentID
    private var realms = BinaryArray(of: Int32.self)
    private var kinds = BinaryArray(of: Kind.self)
    private var ids = BinaryArray(of: UUID.self)
    private var sources = BinaryArray(of: Int64.self)
    private var fields: BinaryArray
    package private(set) var count = 0

    /// - Parameter fieldsCapacity: How many bytes of fields are expected, so that they are copied once.
    package init(environment: EnvironmentID, fieldsCapacity: Int = 0) {
        self.environment = environment
        fields = BinaryArray(of: CanonicalJSON.self, capacity: fieldsCapacity)
    }

    /// Adds a copy. An object may be added once; a batch sorted by key is written fastest.
    ///
    /// - Parameter json: The source's fields, or `nil` for a tombstone. In the canonical form, as what Fieldpost
    ///   publishes is, they are taken as they lie there; others are brought into it.
    /// - Throws: ``JSONProblem``; then nothing is added.
    @inline(__always)
    package mutating func append(
        _ key: ObjectKey, source position: Int64, json: UnsafeRawBufferPointer?
    ) throws(JSONProblem) {
        var rewritten: CanonicalJSON?
        if let json = unsafe json, unsafe !JSONCanonical.isCanonical(Span(_bytes: json.bytes)) {
            rewritten = try unsafe CanonicalJSON(Array(json))
        }
        realms.append(key.realm)
        kinds.append(key.kind)
        ids.append(key.id)
        sources.append(position)
        if let rewritten {
            fields.append(rewritten)
        } else if let json = unsafe json {
            unsafe fields.append(raw: json)
        } else {
            fields.appendNull()
        }
        count += 1
    }

    /// Commits the copies in one round trip.
    ///
    /// - Returns: How many were newer than what was there.
    package func commit(on connection: inout Connection) throws(PostgresError) -> Int {
        if count == 0 { return 0 }
        return try connection.run(statements)[1].affectedCount
    }

    /// A copy whose source moved on without another content advances its `source_position` only.
    package var statements: [Statement] {
        let reserve: Statement = """
            UPDATE realm.environment SET position = position + \(Int64(count)) WHERE id = \(environment.rawValue)
            """
        let write: Statement = """
            WITH b AS (
                SELECT position - \(Int64(count)) AS p, compacted_position AS floor
                FROM realm.environment WHERE id = \(environment.rawValue)
            ), w AS (
                INSERT INTO store.object AS o
                    (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
                SELECT \(environment.rawValue), i.realm_id, i.kind, i.id, p + n, i.source, 0, i.fields IS NULL, i.fields
                FROM b, unnest(\(realms), \(kinds), \(ids), \(sources), \(fields))
                    WITH ORDINALITY AS i(realm_id, kind, id, source, fields, n)
                WHERE i.source > floor OR EXISTS (
                    SELECT FROM store.object x WHERE x.environment_id = \(environment.rawValue)
                        AND x.realm_id = i.realm_id AND x.kind = i.kind AND x.id = i.id
                    OFFSET 0)
                ON CONFLICT (environment_id, realm_id, kind, id) DO UPDATE SET
                    source_position = excluded.source_position, deleted = excluded.deleted, fields = excluded.fields,
                    position = CASE WHEN o.fields IS DISTINCT FROM excluded.fields THEN excluded.position
                        ELSE o.position END
                WHERE o.source_position < excluded.source_position
                RETURNING o.realm_id, o.kind, o.id, o.position
            )
            INSERT INTO store.change (environment_id, position, realm_id, kind, id)
            SELECT \(environment.rawValue), position, realm_id, kind, id FROM w, b WHERE position > p
            """
        return [reserve, write]
    }
}
