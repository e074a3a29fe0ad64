import BackendConnections
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Collects what a batch of decisions writes.
struct CommandWrites {
    private let loaded: Loaded
    private var expected: [(target: UUID, call: UUID?, decision: Int)] = []
    private var saved: [AttemptStore.Write] = []
    private var forgotten: [(target: UUID, decision: Int)] = []
    private var outcomes: [(key: ObjectKey, outcome: CommandDecision.Outcome, decision: Int)] = []
    private var accounts: [Int32: (patch: AccountPatch, decision: Int)] = [:]
    private var gone: [ObjectKey: Int] = [:]
    private var done: [(realm: Int32, decision: Int)] = []
    /// Records that commands wait for, as the ledger and as their people call them, and those commands.
    private var awaited: (targets: Set<UUID>, places: Set<OrderStore.Place>, by: [UUID]) = ([], [], [])
    /// Records with which a command of this batch begins.
    private var begun: Set<UUID> = []

    /// What is known of a person's login.
    private struct AccountPatch: Encodable {
        let status: DefectAccount.Status
        let reason: String?

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Name.self)
            try container.encode(status, forKey: .status)
            // It takes an earlier reason away.
            try container.encode(reason, forKey: .reason)
        }

        private enum Name: CodingKey { case status, reason }
    }

    /// What came of a command; what is `nil` stays as it is.
    private struct OutcomePatch: Encodable {
        let status: DefectCommand.Status
        let messages: [String]
        let record: String?
        let choices: [String: [String]]?
    }

    init(_ loaded: Loaded) { self.loaded = loaded }

    func hasBegun(_ target: UUID?) -> Bool { target.map { begun.contains($0) } ?? false }

    mutating func add(
        _ decision: CommandDecision, _ key: ObjectKey, _ state: CommandState, target: UUID?, call: UUID, _ index: Int
    ) {
        if let target, decision.ledger != .unchanged {
            expected.append((target, state.attempt?.call, index))
        }
        switch (decision.ledger, target) {
        case (.keep(let record, let lease), let target?):
            begun.insert(target)
            saved.append(
                AttemptStore.Write(
                    target: target, realm: key.realm, command: key.id, call: call, record: record, lease: lease,
                    decision: index))
        case (.forget, let target?): forgotten.append((target, index))
        case (.unchanged, _), (_, nil): break
        }
        if let reason = decision.loginRefused, accounts[key.realm] == nil {
            accounts[key.realm] = (AccountPatch(status: .refused, reason: reason), index)
        }
        guard let outcome = decision.outcome else { return }
        outcomes.append((key, outcome, index))
        for command in loaded.surplus[key.realm] ?? [] {
            let key = ObjectKey(realm: key.realm, kind: .defectCommand, id: command)
            if gone[key] == nil { gone[key] = index }
        }
        guard outcome.status == .done, outcome.choices == nil else { return }
        done.append((key.realm, index))
        if case .live(let command) = state.command, command.operation == .delete, let record = command.record,
            let mirror = loaded.mirror(of: record)
        {
            gone[ObjectKey(realm: key.realm, kind: .defect, id: mirror)] = index
        }
    }

    /// A command waits until a record is free.
    mutating func wait(_ key: ObjectKey, for target: UUID?, _ place: OrderStore.Place?) {
        awaited.by.append(key.id)
        if let target { awaited.targets.insert(target) }
        if let place { awaited.places.insert(place) }
    }

    /// What is known of a person's login by now.
    mutating func tell(_ status: DefectAccount.Status, _ reason: String?, of object: RealmObject, _ index: Int) {
        if accounts[object.key.realm] == nil {
            accounts[object.key.realm] = (AccountPatch(status: status, reason: reason), index)
        }
    }

    func write(to batch: inout WriteBatch, _ encoder: JSONEncoder) throws {
        let environment = loaded.environment
        for (key, outcome, decision) in outcomes {
            guard let object = loaded.objects[key] else { continue }
            let patch = OutcomePatch(
                status: outcome.status, messages: outcome.messages, record: outcome.record, choices: outcome.choices)
            try batch.patch(object, try CanonicalJSON(encoding: patch, by: encoder), decision: decision)
        }
        for (realm, item) in accounts {
            guard let object = loaded.accounts[realm] else { continue }
            try batch.patch(object, try CanonicalJSON(encoding: item.patch, by: encoder), decision: item.decision)
        }
        for (key, decision) in gone { batch.delete(key, decision: decision) }
        let mirrors = gone.filter { $0.key.kind == .defect }.map { (key: $0.key, decision: $0.value) }
        if !mirrors.isEmpty { batch.also(AttemptStore.releaseMirrors(mirrors, in: environment)) }
        if !expected.isEmpty { batch.expect(AttemptStore.expect(expected, in: environment)) }
        if !saved.isEmpty { batch.also(AttemptStore.save(saved, in: environment)) }
        if !forgotten.isEmpty { batch.also(AttemptStore.forget(forgotten, in: environment)) }
        if !awaited.by.isEmpty {
            batch.also(
                OrderStore.wake(
                    Array(awaited.targets), Array(awaited.places), for: awaited.by, in: environment))
        }
        if !done.isEmpty {
            batch.also(
                loaded.stored?.account == nil
                    ? AttemptStore.askForOwnRounds(done, in: environment)
                    : AttemptStore.askForRound(done.map(\.decision), in: environment))
        }
    }
}
