import Access
import Audit
import Essentials
import FoundationEssentials
import Identity
import Model
import ObjectStore
import Postgres

/// The writes of a plan, and its outcome after the commit. All requests of a caller are one decision: they succeed or
/// conflict together.
struct MutationTransaction {
    private let requests: [MutationRequest]
    private let plan: MutationPlan
    private let loaded: BatchState
    private let realms: [RealmPath: Int32]
    private let decisions: [Caller: Int32]

    init(requests: [MutationRequest], plan: MutationPlan, loaded: BatchState, realms: [RealmPath: Int32]) {
        self.requests = requests
        self.plan = plan
        self.loaded = loaded
        self.realms = realms
        var decisions: [Caller: Int32] = [:]
        for request in requests where decisions[request.caller] == nil {
            decisions[request.caller] = Int32(decisions.count)
        }
        self.decisions = decisions
    }

    private func decision(_ caller: Caller) -> Int32 { decisions[caller] ?? 0 }

    private func decision(_ target: TargetKey) -> Int32 { plan.writers[target].map(decision) ?? 0 }

    private func key(_ target: TargetKey) -> ObjectKey {
        ObjectKey(realm: realms[target.realm] ?? 0, kind: target.kind, id: target.id)
    }

    /// Returns an accepted mutation's position if its object was not written: the object's, or one at which it did not
    /// exist.
    private func otherwise(_ target: TargetKey) -> Int64 {
        let position = plan.targets[target]?.loadedPosition ?? 0
        return position > 0 ? position : loaded.position
    }

    func batch(_ store: MutationStore) throws -> WriteBatch {
        var batch = WriteBatch(environment: store.environment)
        for request in requests where request.traceparent != nil {
            batch.trace(request.traceparent, decision: Int(decision(request.caller)))
        }
        let deleted = Set(plan.targets.lazy.filter { $0.value.write == .delete }.map { key($0.key) })
        for target in plan.orderedTargets {
            guard let folded = plan.targets[target] else { continue }
            let decision = Int(decision(target))
            batch.expect(key(target), at: folded.loadedPosition, decision: decision)
            switch folded.write {
            case .put(let fields):
                batch.put(key(target), try CanonicalJSON(fields), decision: decision, isEdit: true)
            case .delete:
                batch.delete(key(target), decision: decision, isEdit: true)
                for line in loaded.lines[key(target)] ?? [] where !deleted.contains(line) {
                    batch.delete(line, decision: decision)
                }
            case .putAndDelete(let fields):
                batch.put(key(target), try CanonicalJSON(fields), decision: decision, isEdit: true)
                batch.delete(key(target), decision: decision, isEdit: true)
            case nil: break
            }
        }
        for (entry, line) in plan.lines {
            let key = ObjectKey(realm: key(entry).realm, kind: .timeEntryStatus, id: UUID())
            batch.put(key, try CanonicalJSON(line.json), decision: Int(decision(entry)))
        }
        checkReferences(in: &batch)
        checkPermissions(in: &batch, store)
        if !plan.namers.isEmpty, let common = realms[.common] {
            batch.expect(
                TeamNames.conflictIfChanged(
                    since: loaded.position, plan.namers.map(decision), common: common, in: store.environment))
        }
        let numbers = Dictionary(decisions.map { ($0.key.id, $0.value) }) { first, _ in first }
        let clients = plan.nextSequences.map { ($0.key, $0.value, numbers[$0.key.caller] ?? 0) }
        if clients.isEmpty { return batch }
        batch.expect(store.checkSequences(clients.map { ($0.0, loaded.nextSequences[$0.0] ?? 1, $0.2) }))
        batch.also(store.insert(resultRows()))
        batch.also(store.advance(clients.map { (key: $0.0, next: $0.1, decision: $0.2) }))
        let old = clients.filter { $0.1 > store.storedResultCountMax }
        if !old.isEmpty { batch.also(store.deleteExpiredResults(old.map { (key: $0.0, next: $0.1) })) }
        return batch
    }

    /// Adds version checks of the referenced objects, under the counter's lock.
    private func checkReferences(in batch: inout WriteBatch) {
        for (target, callers) in plan.references {
            let position = loaded.targets[target]?.position ?? 0
            for caller in callers { batch.expect(key(target), at: position, decision: Int(decision(caller))) }
        }
    }

    /// Adds version checks of the objects that grant the permissions, under the counter's lock: if one is revoked
    /// meanwhile, the decision conflicts.
    private func checkPermissions(in batch: inout WriteBatch, _ store: MutationStore) {
        let written = Set(plan.writers.map { Permitted(caller: $0.value, realm: $0.key.realm) })
        for permitted in written {
            guard let state = loaded.access[permitted.caller], let common = realms[.common] else { continue }
            for (key, position) in state.guards(for: permitted.realm, common: common) {
                batch.expect(key, at: position, decision: Int(decision(permitted.caller)))
            }
        }
        let integrations = decisions.filter { $0.key.object == nil }.map { (id: -$0.key.id, decision: $0.value) }
        if !integrations.isEmpty {
            batch.expect(IntegrationStore.missRemoved(integrations, in: store.environment))
        }
        if !plan.audit.isEmpty {
            batch.also(
                AuditRecord.insert(plan.audit.map { ($0.record, decision($0.caller)) }, in: store.environment))
        }
    }

    private struct Permitted: Hashable {
        let caller: Caller
        let realm: RealmPath
    }

    private func resultRows() -> MutationResultRows {
        var rows = MutationResultRows()
        for (request, planned) in zip(requests, plan.requests) {
            guard let planned else { continue }
            let client = ClientKey(caller: request.caller.id, client: request.clientID)
            let decision = decision(request.caller)
            for (mutation, result) in zip(request.mutations.dropFirst(planned.replayed.count), planned.decided) {
                switch result {
                case .success(let target):
                    rows.accept(
                        client, mutation.sequence, decision: decision, object: key(target), otherwise: otherwise(target)
                    )
                case .failure(let rejection): rows.reject(client, mutation.sequence, decision: decision, rejection)
                }
            }
        }
        return rows
    }

    func outcomes(_ outcome: WriteOutcome) -> [MutationBatch.Outcome] {
        zip(requests, plan.requests).map { request, planned in
            let client = ClientKey(caller: request.caller.id, client: request.clientID)
            let next = plan.nextSequences[client] ?? loaded.nextSequences[client] ?? 1
            guard let planned else { return .gap(expected: next) }
            if outcome.missed.contains(Int(decision(request.caller))) { return .conflicted }
            let decided = planned.decided.map { result in
                result.map { outcome.positions[key($0)] ?? otherwise($0) }
            }
            return .results(planned.replayed + decided, next: next)
        }
    }
}

extension TimeEntryStatus {
    /// The line's fields as JSON, without a message.
    fileprivate var json: String {
        "{\"entry\":\"\(entry.text)\",\"status\":\"\(status.rawValue)\",\"timestamp\":\"\(timestamp)\"}"
    }
}
