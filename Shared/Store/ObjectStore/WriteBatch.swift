package import Essentials
package import Model
package import Postgres

/// The writes of one transaction to the objects of one environment (laws 2 and 3).
///
/// Each write belongs to a decision, and each decision has preconditions: the positions it is based on. The batch is
/// sent as one pipeline: it reserves positions on the counter row, which locks it; finds the decisions whose objects
/// have changed since; and performs the writes of the others. The conflicted decisions are returned, to be reprocessed
/// with the current state.
package struct WriteBatch: Sendable {
    private struct Write: Sendable {
        let key: ObjectKey
        /// The fields; `nil` for a deletion.
        let fields: CanonicalJSON?
        let decision: Int32
        let isEdit: Bool
    }

    package let environment: EnvironmentID
    private var writes: [Write] = []
    private var guards: [(key: ObjectKey, position: Int64, decision: Int32)] = []
    private var statements: [Statement] = []
    private var ownGuards: [Statement] = []
    /// The decisions' trace contexts, for the events of their writes.
    private var traces: [Int32: TraceContext] = [:]
    /// Whether the batch defers keys that are due immediately, so that the caller polls for them after the commit.
    package var defersDueKeys = false

    package init(environment: EnvironmentID) { self.environment = environment }

    package var isEmpty: Bool { writes.isEmpty && statements.isEmpty }

    // MARK: Filling

    /// Adds a precondition: the decision is valid only while the object is at this position; 0: it does not exist.
    package mutating func expect(_ key: ObjectKey, at position: Int64, decision: Int) {
        guards.append((key, position, Int32(decision)))
    }

    /// Stores the fields as the complete object; creates it or revives its tombstone if necessary.
    package mutating func put(_ key: ObjectKey, _ fields: CanonicalJSON, decision: Int, isEdit: Bool = false) {
        writes.append(Write(key: key, fields: fields, decision: Int32(decision), isEdit: isEdit))
    }

    /// Replaces top-level fields of a loaded object and keeps the others; has no effect on a tombstone. The object's
    /// position is a precondition.
    ///
    /// - Throws: ``JSONError`` if the stored fields or `fields` are not a JSON object.
    package mutating func patch(
        _ object: RealmObject, _ fields: CanonicalJSON, decision: Int, isEdit: Bool = false
    ) throws(JSONError) {
        guard let stored = object.fields else { return }
        expect(object.key, at: object.position, decision: decision)
        put(object.key, try stored.merging(fields), decision: decision, isEdit: isEdit)
    }

    /// Sets the trace context of the decision's writes.
    package mutating func trace(_ trace: TraceContext?, decision: Int) { traces[Int32(decision)] = trace }

    /// Replaces the object by a tombstone.
    package mutating func delete(_ key: ObjectKey, decision: Int, isEdit: Bool = false) {
        writes.append(Write(key: key, fields: nil, decision: Int32(decision), isEdit: isEdit))
    }

    /// Adds a statement that runs after the writes in the same transaction. A statement of a decision must exclude
    /// those in `realm.missed()`.
    package mutating func append(_ statement: Statement) { statements.append(statement) }

    /// Adds a statement that runs before the writes, under the counter's lock: a precondition on another table.
    ///
    /// - Parameter statement: `SELECT realm.miss(array_agg(decision)) FROM …` where the precondition fails.
    package mutating func expect(_ statement: Statement) { ownGuards.append(statement) }

    // MARK: Committing

    /// Commits the batch in one round trip.
    ///
    /// - Precondition: Each object is put at most once and deleted at most once in a batch; merge repeated writes
    ///   before. A deletion follows the put of the same object.
    package func commit(on connection: inout Connection) throws(PostgresError) -> WriteOutcome {
        if isEmpty { return WriteOutcome(conflicts: [], positions: [:]) }
        let (prelude, changes) = (prelude, changes)
        let results = try connection.run(prelude + changes + statements)

        let missed = try results[prelude.count - 1][0].decode([Int32].self)
        var positions: [ObjectKey: Int64] = [:]
        for result in results[prelude.count..<prelude.count + changes.count] {
            for row in result {
                let ordinal = Int(try row.value(0, as: Int32.self))
                positions[writes[ordinal - 1].key] = try row.value(1)
            }
        }
        return WriteOutcome(conflicts: Set(missed.map(Int.init)), positions: positions)
    }

    /// The statements of ``commit(on:)``, for measurements.
    package var pipeline: [Statement] { prelude + changes + statements }

    private var prelude: [Statement] {
        let reserve: Statement = """
            UPDATE realm.environment SET position = position + \(Int64(writes.count))
            WHERE id = \(environment.rawValue)
            """
        return [reserve, objectGuards()] + ownGuards + ["SELECT realm.missed()"]
    }

    private var changes: [Statement] {
        [write(areDeletions: false), write(areDeletions: true)].compactMap(\.self)
    }

    /// Returns the first precondition of each valid decision: the object, and its position after the commit.
    package func positions(
        after outcome: WriteOutcome
    ) -> [Int: (decision: Int, key: ObjectKey, position: Int64)] {
        var positions: [Int: (decision: Int, key: ObjectKey, position: Int64)] = [:]
        for item in guards where !outcome.conflicts.contains(Int(item.decision)) {
            let decision = Int(item.decision)
            guard positions[decision] == nil else { continue }
            positions[decision] = (decision, item.key, outcome.positions[item.key] ?? item.position)
        }
        return positions
    }

    /// Sets `fieldpost.missed` for the transaction to the decisions whose preconditions fail.
    private func objectGuards() -> Statement {
        var keys = ObjectKeyColumns()
        var positions = BinaryArray(of: Int64.self)
        var decisions = BinaryArray(of: Int32.self)
        for item in guards {
            keys.append(item.key)
            positions.append(item.position)
            decisions.append(item.decision)
        }
        return """
            SELECT realm.miss(array_agg(DISTINCT g.decision))
            FROM unnest(\(keys.realms), \(keys.kinds), \(keys.ids), \(positions), \(decisions))
                AS g(realm_id, kind, id, position, decision)
            LEFT JOIN LATERAL (
                SELECT o.position FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = g.realm_id
                    AND o.kind = g.kind AND o.id = g.id
                OFFSET 0
            ) o ON true
            WHERE coalesce(o.position, 0) <> g.position
            """
    }

    /// Returns the statement for puts or for deletions. Rows: ordinal, position of the written object.
    private func write(areDeletions: Bool) -> Statement? {
        var rows = WriteColumns()
        for (index, write) in writes.enumerated() where (write.fields == nil) == areDeletions {
            rows.append(write.key, write.fields, write.decision, write.isEdit, ordinal: index + 1)
        }
        guard rows.count > 0 else { return nil }
        let total = Int64(writes.count)
        return areDeletions
            ? rows.delete(environment, total, traceparents) : rows.put(environment, total, traceparents)
    }

    /// The trace contexts of all writes, in order.
    private var traceparents: Traceparents { Traceparents(writes.map { traces[$0.decision] }) }
}

/// The result of a committed batch.
package struct WriteOutcome: Sendable {
    /// The decisions whose preconditions failed, of which nothing was written.
    package let conflicts: Set<Int>
    /// The new positions of the changed objects, without unchanged ones.
    package let positions: [ObjectKey: Int64]
}
