import BackendConnections
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Collects the writes of a batch of decisions.
struct CommandWrites {
    private let snapshot: CommandSnapshot
    private var expected: [(target: UUID, call: UUID?, decision: Int)] = []
    private var saved: [AttemptStore.RowWrite] = []
    private var removed: [(target: UUID, decision: Int)] = []
    private var outcomes: [(key: ObjectKey, outcome: CommandDecision.Outcome, decision: Int)] = []
    private var accounts: [Int32: (patch: AccountPatch, decision: Int)] = [:]
    private var deleted: [ObjectKey: Int] = [:]
    private var done: [(realm: Int32, decision: Int)] = []
    /// Records that commands wait for, by ledger id and by record name, and the waiting commands.
    private var awaited: (targets: Set<UUID>, recordKeys: Set<CommandOrderStore.RecordKey>, by: [UUID]) = ([], [], [])
    /// Records for which this batch starts a command.
    private var startedTargets: Set<UUID> = []

    /// The status of a person's login.
    private struct AccountPatch: Encodable {
        let status: DefectAccount.Status
        let reason: String?

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Name.self)
            try container.encode(status, forKey: .status)
            // Also writes `nil`, to remove an earlier reason.
            try container.encode(reason, forKey: .reason)
        }

        private enum Name: CodingKey { case status, reason }
    }

    /// The outcome of a command; fields that are `nil` stay unchanged.
    private struct OutcomePatch: Encodable {
        let status: DefectCommand.Status
        let messages: [String]
        let record: String?
        let choices: [String: [String]]?
        let detail: DefectDetail?
    }

    init(_ snapshot: CommandSnapshot) { self.snapshot = snapshot }

    func hasStarted(_ target: UUID?) -> Bool { target.map { startedTargets.contains($0) } ?? false }

    mutating func add(
        _ decision: CommandDecision, _ key: ObjectKey, _ state: CommandState, target: UUID?, call: UUID, _ index: Int
    ) {
        if let target, decision.ledger != .unchanged {
            expected.append((target, state.attempt?.call, index))
        }
        switch (decision.ledger, target) {
        case (.save(let record, let lease), let target?):
            startedTargets.insert(target)
            saved.append(
                AttemptStore.RowWrite(
                    target: target, realm: key.realm, command: key.id, call: call, record: record, lease: lease,
                    decision: index))
        case (.remove, let target?): removed.append((target, index))
        case (.unchanged, _), (_, nil): break
        }
        if let reason = decision.loginRejection, accounts[key.realm] == nil {
            accounts[key.realm] = (AccountPatch(status: .refused, reason: reason), index)
        }
        guard let outcome = decision.outcome else { return }
        outcomes.append((key, outcome, index))
        for command in snapshot.surplus[key.realm] ?? [] {
            let key = ObjectKey(realm: key.realm, kind: .defectCommand, id: command)
            if deleted[key] == nil { deleted[key] = index }
        }
        guard outcome.status == .done, case .live(let command) = state.command, !command.operation.isReading else {
            return
        }
        done.append((key.realm, index))
        if command.operation == .delete, let record = command.record, let mirror = snapshot.mirror(of: record) {
            deleted[ObjectKey(realm: key.realm, kind: .defect, id: mirror)] = index
        }
    }

    /// Adds a command that waits for a record.
    mutating func wait(_ key: ObjectKey, for target: UUID?, _ recordKey: CommandOrderStore.RecordKey?) {
        awaited.by.append(key.id)
        if let target { awaited.targets.insert(target) }
        if let recordKey { awaited.recordKeys.insert(recordKey) }
    }

    /// Sets the status of a person's login.
    mutating func updateAccount(_ status: DefectAccount.Status, _ reason: String?, of object: RealmObject, _ index: Int)
    {
        if accounts[object.key.realm] == nil {
            accounts[object.key.realm] = (AccountPatch(status: status, reason: reason), index)
        }
    }

    func write(to batch: inout WriteBatch, _ encoder: JSONEncoder) throws {
        let environment = snapshot.environment
        for (key, outcome, decision) in outcomes {
            guard let object = snapshot.objects[key] else { continue }
            let patch = OutcomePatch(
                status: outcome.status, messages: outcome.messages, record: outcome.record, choices: outcome.choices,
                detail: outcome.detail)
            try batch.patch(object, try CanonicalJSON(encoding: patch, by: encoder), decision: decision)
        }
        for (realm, item) in accounts {
            guard let object = snapshot.accounts[realm] else { continue }
            try batch.patch(object, try CanonicalJSON(encoding: item.patch, by: encoder), decision: item.decision)
        }
        for (key, decision) in deleted { batch.delete(key, decision: decision) }
        let mirrors = deleted.filter { $0.key.kind == .defect }.map { (key: $0.key, decision: $0.value) }
        if !mirrors.isEmpty { batch.append(AttemptStore.removeMirrors(mirrors, in: environment)) }
        if !expected.isEmpty { batch.expect(AttemptStore.expect(expected, in: environment)) }
        if !saved.isEmpty { batch.append(AttemptStore.save(saved, in: environment)) }
        if !removed.isEmpty { batch.append(AttemptStore.remove(removed, in: environment)) }
        if !awaited.by.isEmpty {
            batch.append(
                CommandOrderStore.requeueAbandoned(
                    Array(awaited.targets), Array(awaited.recordKeys), for: awaited.by, in: environment))
        }
        if !done.isEmpty {
            batch.append(
                snapshot.stored?.account == nil
                    ? AttemptStore.requestOwnLoginPolls(done, in: environment)
                    : AttemptStore.requestPoll(done.map(\.decision), in: environment))
        }
    }
}
