import Access
import Audit
import Essentials
import FoundationEssentials
import Identity
import Model
import ObjectStore
import Postgres

/// A plan on its way into a transaction and back. A caller is one decision: their requests stand or fall together.
struct MutationWork {
    private let requests: [MutationRequest]
    private let plan: MutationPlan
    private let loaded: LoadedState
    private let realms: [RealmPath: Int32]
    private let decisions: [Caller: Int32]

    init(requests: [MutationRequest], plan: MutationPlan, loaded: LoadedState, realms: [RealmPath: Int32]) {
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

    /// An accepted mutation's position when its object was not written: where it is, or where it is known not to be.
    private func otherwise(_ target: TargetKey) -> Int64 {
        let position = plan.targets[target]?.loadedPosition ?? 0
        return position > 0 ? position : loaded.position
    }

    func batch(_ store: MutationStore) throws -> WriteBatch {
        var batch = WriteBatch(environment: store.environment)
        for request in requests where request.traceparent != nil {
            batch.trace(request.traceparent, decision: Int(decision(request.caller)))
        }
        let gone = Set(plan.targets.lazy.filter { $0.value.write == .delete }.map { key($0.key) })
        for target in plan.inOrder {
            guard let folded = plan.targets[target] else { continue }
            let decision = Int(decision(target))
            batch.expect(key(target), at: folded.loadedPosition, decision: decision)
            switch folded.write {
            case .put(let fields):
                batch.put(key(target), try CanonicalJSON(fields), decision: decision, isEdit: true)
            case .delete:
                batch.delete(key(target), decision: decision, isEdit: true)
                for line in loaded.lines[key(target)] ?? [] where !gone.contains(line) {
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
        expectReferences(in: &batch)
        expectPermissions(in: &batch, store)
        if !plan.namers.isEmpty, let common = realms[.common] {
            batch.expect(
                TeamNames.missChanged(
                    since: loaded.position, plan.namers.map(decision), common: common, in: store.environment))
        }
        let numbers = Dictionary(decisions.map { ($0.key.id, $0.value) }) { first, _ in first }
        let clients = plan.nextSequences.map { ($0.key, $0.value, numbers[$0.key.caller] ?? 0) }
        if clients.isEmpty { return batch }
        batch.expect(store.guardStatement(clients.map { ($0.0, loaded.nextSequences[$0.0] ?? 1, $0.2) }))
        batch.also(store.keep(kept()))
        batch.also(store.advance(clients.map { (key: $0.0, next: $0.1, decision: $0.2) }))
        let old = clients.filter { $0.1 > store.answersKeptMax }
        if !old.isEmpty { batch.also(store.forget(old.map { (key: $0.0, next: $0.1) })) }
        return batch
    }

    /// The referenced objects are compared under the counter's lock: a decision misses if one has changed since.
    private func expectReferences(in batch: inout WriteBatch) {
        for (target, callers) in plan.references {
            let position = loaded.targets[target]?.position ?? 0
            for caller in callers { batch.expect(key(target), at: position, decision: Int(decision(caller))) }
        }
    }

    /// What the decisions were permitted by is compared under the counter's lock: who loses it meanwhile misses.
    private func expectPermissions(in batch: inout WriteBatch, _ store: MutationStore) {
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

    private func kept() -> KeptAnswers {
        var kept = KeptAnswers()
        for (request, result) in zip(requests, plan.results) {
            guard case .answers(let answers) = result else { continue }
            let client = ClientKey(caller: request.caller.id, client: request.clientID)
            let decision = decision(request.caller)
            for (mutation, answer) in zip(request.mutations, answers) {
                switch answer {
                case .again: break
                case .accepted(let target):
                    kept.accept(
                        client, mutation.sequence, decision: decision, object: key(target), otherwise: otherwise(target)
                    )
                case .rejected(let rejection):
                    kept.reject(client, mutation.sequence, decision: decision, rejection)
                }
            }
        }
        return kept
    }

    func outcomes(_ outcome: WriteOutcome) -> [MutationBatch.Outcome] {
        zip(requests, plan.results).map { request, result in
            switch result {
            case .gap(let expected): return .gap(expected: expected)
            case .answers(let answers):
                if outcome.missed.contains(Int(decision(request.caller))) { return .contended }
                let client = ClientKey(caller: request.caller.id, client: request.clientID)
                let next = plan.nextSequences[client] ?? loaded.nextSequences[client] ?? 1
                return .answers(answers.map { final($0, outcome) }, next: next)
            }
        }
    }

    private func final(_ answer: MutationPlan.Answer, _ outcome: WriteOutcome) -> MutationAnswer {
        switch answer {
        case .again(let earlier): earlier
        case .rejected(let rejection): .rejected(rejection)
        case .accepted(let target): .accepted(position: outcome.positions[key(target)] ?? otherwise(target))
        }
    }
}

extension TimeEntryStatus {
    /// The fields of a line without a message.
    fileprivate var json: String {
        "{\"entry\":\"\(entry.text)\",\"status\":\"\(status.rawValue)\",\"timestamp\":\"\(timestamp)\"}"
    }
}
