import Backends
import FoundationEssentials
import Model
import Postgres
import Realms

/// Collects what a batch of decisions writes: one statement per table.
struct EntryWrites {
    private var ledgers: [EntryStore.LedgerWrite] = []
    private var versions: [(entry: UUID, version: Int64, decision: Int)] = []
    private var forgotten: [(entry: UUID, decision: Int)] = []
    private var forgottenRealms: Set<Int32> = []
    private var changes: [(key: ObjectKey, change: SubmissionDecision.EntryChange, decision: Int)] = []
    private var lines: [(key: ObjectKey, line: TimeEntryStatus, decision: Int)] = []

    /// - Parameters:
    ///   - loaded: The entry's own ledger.
    ///   - version: That of the row there is, whosever it is.
    mutating func add(
        _ decision: SubmissionDecision, key: ObjectKey, loaded: Ledger?, version: Int64, decision index: Int,
        now: Int64
    ) {
        versions.append((key.id, version, index))
        if let change = decision.entry { changes.append((key, change, index)) }
        var ledger = decision.ledger
        for (offset, entryLine) in decision.log.enumerated() {
            // Never at or before the line before: the newest line is the one that tells the status.
            let time = max(now, (ledger?.loggedAt ?? loaded?.loggedAt ?? 0) + 1)
            ledger?.loggedAt = time
            let line = TimeEntryStatus(
                entry: key.id, status: entryLine.status, timestamp: Timestamp(millisecondsSinceEpoch: time),
                message: entryLine.message, code: entryLine.code)
            // The same decision made again writes the same lines.
            let name = "\(ledger?.version ?? 0)/\(offset)"
            lines.append(
                (ObjectKey(realm: key.realm, kind: .timeEntryStatus, id: UUID(name: name, in: key.id)), line, index))
        }
        if decision.forgets {
            forgotten.append((key.id, index))
            forgottenRealms.insert(key.realm)
        } else if let ledger {
            ledgers.append(
                EntryStore.LedgerWrite(
                    entry: key.id, realm: key.realm, ledger: ledger, lease: decision.lease, decision: index))
        }
    }

    func write(to batch: inout WriteBatch, _ environment: EnvironmentID, connection: inout Connection) throws {
        if !versions.isEmpty { batch.expect(EntryStore.expect(versions, in: environment)) }
        if !ledgers.isEmpty { batch.also(try EntryStore.save(ledgers, in: environment)) }
        for (key, change, decision) in changes {
            switch change {
            case .patch(let patch): batch.patch(key, try patch.json(), decision: decision)
            case .put(let fields):
                batch.put(key, JSONBytes([UInt8](try JSONEncoder().encode(fields))), decision: decision)
            case .tombstone: batch.delete(key, decision: decision)
            }
        }
        let encoder = JSONEncoder()
        for (key, line, decision) in lines {
            batch.put(key, JSONBytes([UInt8](try encoder.encode(line))), decision: decision)
        }
        guard !forgotten.isEmpty else { return }
        batch.also(EntryStore.forget(forgotten, in: environment))
        let decisions = Dictionary(forgotten.map { ($0.entry, $0.decision) }) { first, _ in first }
        let rows = try connection.run(
            EntryStore.logLines(of: forgotten.map(\.entry), realms: Array(forgottenRealms), in: environment))
        for row in rows {
            guard let decision = decisions[try row.value(0)] else { continue }
            let key = ObjectKey(realm: try row.value(1), kind: .timeEntryStatus, id: try row.value(2))
            batch.delete(key, decision: decision)
        }
    }
}
