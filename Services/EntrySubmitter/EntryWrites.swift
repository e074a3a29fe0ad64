import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The writes of a batch of decisions: one statement per table.
struct EntryWrites {
    private var ledgers: [EntryStore.LedgerWrite] = []
    private var versions: [(entry: UUID, version: Int64, decision: Int)] = []
    private var removed: [(key: ObjectKey, decision: Int)] = []
    private var finalAttempts: [EntryStore.FinalAttempt] = []
    private var changes: [(key: ObjectKey, change: SubmissionDecision.EntryChange, decision: Int)] = []
    private var lines: [(key: ObjectKey, line: TimeEntryStatus, decision: Int)] = []
    private var notices: [(key: ObjectKey, notice: Notice, decision: Int)] = []

    /// - Parameters:
    ///   - state: The state before the decision.
    ///   - version: The version of the ledger row with this id, also of another realm; 0 without one.
    ///   - encoded: The encoded desired record, if available.
    ///   - record: The row for the history of attempts.
    mutating func add(
        _ decision: SubmissionDecision, about state: SubmissionState, key: ObjectKey, version: Int64,
        encoded: EncodedRecord?, record: AttemptRecord?, decision index: Int, now: Timestamp
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
            // The ledger's version distinguishes successive decisions; without a ledger the time does.
            let name = "\(ledger?.version ?? time.millisecondsSinceEpoch)/\(offset)"
            let id = UUID(name: name, in: key.id)
            lines.append((ObjectKey(realm: key.realm, kind: .timeEntryStatus, id: id), line, index))
            guard offset == 0,
                let notice = EntryNoticeRule.notice(decision, about: state, entry: key.id, at: time)
            else { continue }
            // A decision has at most one notice, whose id is derived from its first line.
            let noticeKey = ObjectKey(realm: key.realm, kind: .notice, id: UUID(name: "notice", in: id))
            notices.append((noticeKey, notice, index))
        }
        if let newest, !decision.log.isEmpty { ledger?.loggedAt = newest.millisecondsSinceEpoch }
        if let change = decision.change(of: state.entry, loggedAt: newest) { changes.append((key, change, index)) }
        if decision.removesLedger {
            removed.append((key, index))
            if let record, record.result != nil {
                finalAttempts.append(
                    EntryStore.FinalAttempt(
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

    /// Adds a log line with the entry's current status.
    mutating func add(_ line: TimeEntryStatus, to key: ObjectKey, decision index: Int) {
        let id = UUID(name: "\(line.timestamp.millisecondsSinceEpoch)/status", in: key.id)
        lines.append((ObjectKey(realm: key.realm, kind: .timeEntryStatus, id: id), line, index))
        changes.append((key, .patch(EntryPatch(statusAt: line.timestamp)), index))
    }

    /// - Parameter objects: The loaded entries.
    func write(
        to batch: inout WriteBatch, over objects: [ObjectKey: RealmObject], _ environment: EnvironmentID,
        connection: inout Connection
    ) throws {
        if !versions.isEmpty { batch.expect(EntryStore.expect(versions, in: environment)) }
        if !ledgers.isEmpty { batch.append(try EntryStore.save(ledgers, in: environment)) }
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
        for (key, notice, decision) in notices {
            batch.put(key, try CanonicalJSON(encoding: notice, by: encoder), decision: decision)
        }
        guard !removed.isEmpty else { return }
        if !finalAttempts.isEmpty { batch.append(EntryStore.insert(finalAttempts, in: environment)) }
        batch.append(EntryStore.delete(removed.map { ($0.key.id, $0.decision) }, in: environment))
        let decisions = Dictionary(removed.map { ($0.key, $0.decision) }) { first, _ in first }
        let rows = try connection.run(
            RealmObject.statusLines(of: removed.map(\.key.id), realms: removed.map(\.key.realm), in: environment))
        for (entry, line) in try rows.map(RealmObject.statusLine) {
            let key = ObjectKey(realm: line.realm, kind: .timeEntry, id: entry)
            guard let decision = decisions[key] else { continue }
            batch.delete(line, decision: decision)
        }
    }
}

extension SubmissionState {
    /// The time of the newest line of the status log, as far as it is loaded.
    fileprivate var loggedAt: Timestamp? {
        let times = [entry.statusAt, ledger.map { Timestamp(millisecondsSinceEpoch: $0.loggedAt) }]
        return times.compactMap(\.self).max()
    }
}

extension SubmissionState.Entry {
    fileprivate var statusAt: Timestamp? { if case .live(let entry, _) = self { entry.statusAt } else { nil } }
}

extension SubmissionDecision {
    /// Returns the change of the entry, which includes the time of new lines of the status log.
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

/// The stored state that the inputs of a batch concern.
struct LoadedBatch {
    /// The entry of each input; `nil` if its realm does not exist.
    let keys: [ObjectKey?]
    /// The observation of each input that is one.
    let observationKeys: [ObjectKey?]
    let objects: [ObjectKey: RealmObject]
    let ledgers: [UUID: EntryStore.StoredLedger]
    let restore: Restore?
}

/// The decisions of a batch so far.
struct BatchDecisions {
    var writes = EntryWrites()
    /// Realms whose entry gets the ledger row of an id in this batch.
    var ledgerRealms: [UUID: Int32] = [:]
    var unchanged: [EntryHandler.Unchanged] = []
    private var decided: Set<ObjectKey> = []

    /// Marks an entry as decided.
    ///
    /// - Returns: The reason why it cannot be decided in this batch; `nil` if it can.
    mutating func conflict(of key: ObjectKey) -> String? {
        // The commit of this batch determines the owner of the id.
        if let realm = ledgerRealms[key.id], realm != key.realm { return "another entry has the same id" }
        return decided.insert(key).inserted ? nil : "the entry is being decided"
    }
}
