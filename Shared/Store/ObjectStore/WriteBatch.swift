package import Essentials
package import Model
package import Postgres

/// One transaction's writes to the objects of one environment (laws 2 and 3).
///
/// Each write belongs to a decision, and each decision names the positions it was made from. All of it goes out as one
/// pipeline: reserve positions on the counter row, which locks it; find the decisions whose objects have moved on
/// since; do the writes of the others. What missed is returned, to be decided again from what is there now.
package struct WriteBatch: Sendable {
    private struct Write: Sendable {
        let key: ObjectKey
        /// `nil`: it is deleted.
        let fields: CanonicalJSON?
        let decision: Int32
        let isEdit: Bool
    }

    package let environment: EnvironmentID
    private var writes: [Write] = []
    private var guards: [(key: ObjectKey, position: Int64, decision: Int32)] = []
    private var statements: [Statement] = []
    private var ownGuards: [Statement] = []
    /// The traces that the decisions belong to, for the events of what they write.
    private var traces: [Int32: TraceContext] = [:]
    /// Keys are parked with it that are due at once: whoever commits it looks for them without waiting.
    package var parksDueKeys = false

    package init(environment: EnvironmentID) { self.environment = environment }

    package var isEmpty: Bool { writes.isEmpty && statements.isEmpty }

    // MARK: Filling

    /// The decision stands only while the object is at this position; 0 means that it is not there.
    package mutating func expect(_ key: ObjectKey, at position: Int64, decision: Int) {
        guards.append((key, position, Int32(decision)))
    }

    /// Stores the fields as the whole object; creates it, or revives its tombstone, where need be.
    package mutating func put(_ key: ObjectKey, _ fields: CanonicalJSON, decision: Int, isEdit: Bool = false) {
        writes.append(Write(key: key, fields: fields, decision: Int32(decision), isEdit: isEdit))
    }

    /// Replaces the named top-level fields of an object that was loaded, and leaves the others; does nothing to a
    /// tombstone. The decision stands only while the object is where it was.
    ///
    /// - Throws: ``JSONProblem`` when what is stored, or `fields`, is no JSON object.
    package mutating func patch(
        _ object: RealmObject, _ fields: CanonicalJSON, decision: Int, isEdit: Bool = false
    ) throws(JSONProblem) {
        guard let stored = object.fields else { return }
        expect(object.key, at: object.position, decision: decision)
        put(object.key, try stored.merging(fields), decision: decision, isEdit: isEdit)
    }

    /// What the decision writes belongs to this span of a trace.
    package mutating func trace(_ trace: TraceContext?, decision: Int) { traces[Int32(decision)] = trace }

    /// Makes the object a tombstone.
    package mutating func delete(_ key: ObjectKey, decision: Int, isEdit: Bool = false) {
        writes.append(Write(key: key, fields: nil, decision: Int32(decision), isEdit: isEdit))
    }

    /// Runs after the writes, in the same transaction. To belong to a decision it leaves out those in `realm.missed()`.
    package mutating func also(_ statement: Statement) { statements.append(statement) }

    /// Runs before the writes, under the counter's lock: a guard on another table than the objects'.
    ///
    /// - Parameter statement: `SELECT realm.miss(array_agg(decision)) FROM …` where the guard does not hold.
    package mutating func expect(_ statement: Statement) { ownGuards.append(statement) }

    // MARK: Committing

    /// Commits the batch in one round trip.
    ///
    /// - Precondition: An object is put at most once in a batch, and deleted at most once; fold before. A deletion
    ///   follows the put.
    package func commit(on connection: inout Connection) throws(PostgresError) -> WriteOutcome {
        if isEmpty { return WriteOutcome(missed: [], positions: [:]) }
        let (prelude, changes) = (prelude, changes)
        let answers = try connection.run(prelude + changes + statements)

        let missed = try answers[prelude.count - 1][0].decode([Int32].self)
        var positions: [ObjectKey: Int64] = [:]
        for answer in answers[prelude.count..<prelude.count + changes.count] {
            for row in answer {
                let ordinal = Int(try row.value(0, as: Int32.self))
                positions[writes[ordinal - 1].key] = try row.value(1)
            }
        }
        return WriteOutcome(missed: Set(missed.map(Int.init)), positions: positions)
    }

    /// The statements that ``commit(on:)`` runs, for whoever measures what they cost.
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

    /// What each decision that stands was made from: the first object that it named, and where that is now (as it was,
    /// or where the decision wrote it).
    package func positions(
        after outcome: WriteOutcome
    ) -> [Int: (decision: Int, key: ObjectKey, position: Int64)] {
        var positions: [Int: (decision: Int, key: ObjectKey, position: Int64)] = [:]
        for item in guards where !outcome.missed.contains(Int(item.decision)) {
            let decision = Int(item.decision)
            guard positions[decision] == nil else { continue }
            positions[decision] = (decision, item.key, outcome.positions[item.key] ?? item.position)
        }
        return positions
    }

    /// Sets `fieldpost.missed` for the transaction to the decisions whose objects are elsewhere by now.
    private func objectGuards() -> Statement {
        var realms = BinaryArray(of: Int32.self)
        var kinds = BinaryArray(of: Kind.self)
        var ids = BinaryArray(of: UUIDValue.self)
        var positions = BinaryArray(of: Int64.self)
        var decisions = BinaryArray(of: Int32.self)
        for item in guards {
            realms.append(item.key.realm)
            kinds.append(item.key.kind)
            ids.append(item.key.id)
            positions.append(item.position)
            decisions.append(item.decision)
        }
        return """
            SELECT realm.miss(array_agg(DISTINCT g.decision))
            FROM unnest(\(realms), \(kinds), \(ids), \(positions), \(decisions))
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

    /// The statement for what is stored, or for what is deleted. Rows: ordinal, position of what was written.
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

    /// Those of all writes, in their order.
    private var traceparents: Traceparents { Traceparents(writes.map { traces[$0.decision] }) }
}

/// What a committed batch did.
package struct WriteOutcome: Sendable {
    /// The decisions whose guards did not hold. Nothing of them was written.
    package let missed: Set<Int>
    /// The new positions of the objects that changed. An object that was so already is not among them.
    package let positions: [ObjectKey: Int64]
}
