package import Model
package import Postgres

/// One transaction's writes to the objects of one environment (laws 2 and 3).
///
/// Each write belongs to a decision, and each decision names the positions it was made from. All of it goes out as one
/// pipeline: reserve positions on the counter row, which locks it; find the decisions whose objects have moved on
/// since; do the writes of the others. What missed is returned, to be decided again from what is there now.
package struct WriteBatch: Sendable {
    private enum Change: Sendable {
        case put(JSONBytes)
        case patch(JSONBytes)
        case delete
    }

    private struct Write: Sendable {
        let key: ObjectKey
        let change: Change
        let decision: Int32
        let isEdit: Bool
    }

    package let environment: EnvironmentID
    private var writes: [Write] = []
    private var guards: [(key: ObjectKey, position: Int64, decision: Int32)] = []
    private var statements: [Statement] = []
    private var ownGuards: [Statement] = []
    /// The W3C trace context that the changes belong to, for their events.
    package var traceparent: String?

    package init(environment: EnvironmentID) { self.environment = environment }

    package var isEmpty: Bool { writes.isEmpty && statements.isEmpty }

    // MARK: Filling

    /// The decision stands only while the object is at this position; 0 means that it is not there.
    package mutating func expect(_ key: ObjectKey, at position: Int64, decision: Int) {
        guards.append((key, position, Int32(decision)))
    }

    /// Stores the fields as the whole object; creates it, or revives its tombstone, where need be.
    package mutating func put(_ key: ObjectKey, _ fields: JSONBytes, decision: Int, isEdit: Bool = false) {
        writes.append(Write(key: key, change: .put(fields), decision: Int32(decision), isEdit: isEdit))
    }

    /// Replaces the named top-level fields and leaves the others; does nothing to a tombstone or where nothing is.
    package mutating func patch(_ key: ObjectKey, _ fields: JSONBytes, decision: Int, isEdit: Bool = false) {
        writes.append(Write(key: key, change: .patch(fields), decision: Int32(decision), isEdit: isEdit))
    }

    /// Makes the object a tombstone.
    package mutating func delete(_ key: ObjectKey, decision: Int, isEdit: Bool = false) {
        writes.append(Write(key: key, change: .delete, decision: Int32(decision), isEdit: isEdit))
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
    /// - Precondition: An object is written at most once in a batch; fold before.
    package func commit(on connection: inout Connection) throws(PostgresError) -> WriteOutcome {
        if isEmpty { return WriteOutcome(missed: [], positions: [:]) }
        let reserve: Statement = """
            UPDATE realm.environment SET position = position + \(Int64(writes.count))
            WHERE id = \(environment.rawValue)
            """
        let prelude = [reserve, objectGuards()] + ownGuards + ["SELECT realm.missed()"]
        let changes = (0..<3).compactMap { sort in write(sort) }
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
        var kinds = BinaryArray(of: String.self)
        var ids = BinaryArray(of: UUIDValue.self)
        var positions = BinaryArray(of: Int64.self)
        var decisions = BinaryArray(of: Int32.self)
        for item in guards {
            realms.append(item.key.realm)
            kinds.append(item.key.kind.rawValue)
            ids.append(item.key.id)
            positions.append(item.position)
            decisions.append(item.decision)
        }
        return """
            SELECT realm.miss(array_agg(DISTINCT g.decision))
            FROM unnest(\(realms), \(kinds), \(ids), \(positions), \(decisions))
                AS g(realm_id, kind, id, position, decision)
            LEFT JOIN LATERAL (
                SELECT o.position FROM realm.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = g.realm_id
                    AND o.kind = g.kind COLLATE "C" AND o.id = g.id
                OFFSET 0
            ) o ON true
            WHERE coalesce(o.position, 0) <> g.position
            """
    }

    /// The statement for one sort of change: 0 puts, 1 patches, 2 deletes. Rows: ordinal, position of what was written.
    private func write(_ sort: Int) -> Statement? {
        var rows = WriteColumns()
        for (index, write) in writes.enumerated() {
            switch (write.change, sort) {
            case (.put(let fields), 0), (.patch(let fields), 1):
                rows.append(write.key, fields, write.decision, write.isEdit, ordinal: index + 1)
            case (.delete, 2): rows.append(write.key, nil, write.decision, write.isEdit, ordinal: index + 1)
            case (.put, _), (.patch, _), (.delete, _): break
            }
        }
        guard rows.count > 0 else { return nil }
        let total = Int64(writes.count)
        return switch sort {
        case 0: rows.put(environment, total, traceparent)
        case 1: rows.patch(environment, total, traceparent)
        default: rows.delete(environment, total, traceparent)
        }
    }
}

/// What a committed batch did.
package struct WriteOutcome: Sendable {
    /// The decisions whose guards did not hold. Nothing of them was written.
    package let missed: Set<Int>
    /// The new positions of the objects that changed. An object that was so already is not among them.
    package let positions: [ObjectKey: Int64]
}
