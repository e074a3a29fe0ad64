import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Collects what a batch of decisions writes: one statement per table.
struct EntryWrites {
    private var ledgers: [EntryStore.LedgerWrite] = []
    private var versions: [(entry: UUID, version: Int64, decision: Int)] = []
    private var forgotten: [(key: ObjectKey, decision: Int)] = []
    private var lastAttempts: [EntryStore.LastAttempt] = []
    private var changes: [(key: ObjectKey, change: SubmissionDecision.EntryChange, decision: Int)] = []
    private var lines: [(key: ObjectKey, line: TimeEntryStatus, decision: Int)] = []

    /// - Parameters:
    ///   - state: What was decided about.
    ///   - version: That of the ledger's row there is, whosever it is.
    ///   - encoded: How what the ledger may keep is written.
    ///   - record: What it adds to the history of attempts.
    mutating func add(
        _ decision: SubmissionDecision, about state: SubmissionState, key: ObjectKey, version: Int64,
        encoded: EncodedWanted?, record: AttemptRecord?, decision index: Int, now: Timestamp
    ) {
        versions.append((key.id, version, index))
        var ledger = decision.ledger
        var newest = state.loggedAt
        for (offset, entryLine) in decision.log.enumerated() {
            let time = TimeEntryStatus.time(now, after: newest)
            newest = time
            let line = TimeEntryStatus(
                entry: key.id, status: entryLine.status, timestamp: time, message: entryLine.message,
                code: entryLine.code)
            // The ledger's version tells one decision from the next; without a ledger only the time does.
            let name = "\(ledger?.version ?? time.millisecondsSinceEpoch)/\(offset)"
            lines.append(
                (ObjectKey(realm: key.realm, kind: .timeEntryStatus, id: UUID(name: name, in: key.id)), line, index))
        }
        if let newest, !decision.log.isEmpty { ledger?.loggedAt = newest.millisecondsSinceEpoch }
        if let change = decision.change(of: state.entry, loggedAt: newest) { changes.append((key, change, index)) }
        if decision.forgets {
            forgotten.append((key, index))
            if let record, record.heard != nil {
                lastAttempts.append(
                    EntryStore.LastAttempt(
                        entry: key.id, realm: key.realm, version: version + 1,
                        editPosition: state.ledger?.editPosition ?? 0, record: record, decision: index))
            }
        } else if let ledger {
            ledgers.append(
                EntryStore.LedgerWrite(
                    entry: key.id, realm: key.realm, ledger: ledger, encoded: encoded, lease: decision.lease,
                    record: record, decision: index))
        }
    }

    /// A line that tells the status that the entry has.
    mutating func add(_ line: TimeEntryStatus, to key: ObjectKey, decision index: Int) {
        let id = UUID(name: "\(line.timestamp.millisecondsSinceEpoch)/status", in: key.id)
        lines.append((ObjectKey(realm: key.realm, kind: .timeEntryStatus, id: id), line, index))
        changes.append((key, .patch(EntryPatch(statusAt: line.timestamp)), index))
    }

    /// - Parameter objects: The entries as they were loaded.
    func write(
        to batch: inout WriteBatch, over objects: [ObjectKey: RealmObject], _ environment: EnvironmentID,
        connection: inout Connection
    ) throws {
        if !versions.isEmpty { batch.expect(EntryStore.expect(versions, in: environment)) }
        if !ledgers.isEmpty { batch.also(try EntryStore.save(ledgers, in: environment)) }
        for (key, change, decision) in changes {
            switch change {
            case .patch(let patch):
                if let object = objects[key] { try batch.patch(object, try patch.json(), decision: decision) }
            case .put(let fields):
                batch.put(key, try CanonicalJSON(encoding: fields), decision: decision)
            case .tombstone: batch.delete(key, decision: decision)
            }
        }
        let encoder = JSONEncoder()
        for (key, line, decision) in lines {
            batch.put(key, try CanonicalJSON(encoding: line, by: encoder), decision: decision)
        }
        guard !forgotten.isEmpty else { return }
        if !lastAttempts.isEmpty { batch.also(EntryStore.keep(lastAttempts, in: environment)) }
        batch.also(EntryStore.forget(forgotten.map { ($0.key.id, $0.decision) }, in: environment))
        let decisions = Dictionary(forgotten.map { ($0.key, $0.decision) }) { first, _ in first }
        let rows = try connection.run(
            RealmObject.statusLines(
                of: forgotten.map(\.key.id), realms: forgotten.map(\.key.realm), in: environment))
        for (entry, line) in try rows.map(RealmObject.statusLine) {
            let key = ObjectKey(realm: line.realm, kind: .timeEntry, id: entry)
            guard let decision = decisions[key] else { continue }
            batch.delete(line, decision: decision)
        }
    }
}

extension SubmissionState {
    /// The time of the newest line of the status log that is known of.
    fileprivate var loggedAt: Timestamp? {
        let known = [entry.statusAt, ledger.map { Timestamp(millisecondsSinceEpoch: $0.loggedAt) }]
        return known.compactMap(\.self).max()
    }
}

extension SubmissionState.Entry {
    fileprivate var statusAt: Timestamp? { if case .live(let entry, _) = self { entry.statusAt } else { nil } }
}

extension SubmissionDecision {
    /// What is written of the entry: with lines of the status log, their time too.
    fileprivate func change(of stored: SubmissionState.Entry, loggedAt: Timestamp?) -> EntryChange? {
        if log.isEmpty { return entry }
        switch entry {
        case .put(var fields)?:
            fields.statusAt = loggedAt
            return .put(fields)
        case .patch(var patch)?:
            patch.statusAt = loggedAt
            return .patch(patch)
        case .tombstone?: return entry
        case nil:
            guard case .live = stored else { return nil }
            return .patch(EntryPatch(statusAt: loggedAt))
        }
    }
}
