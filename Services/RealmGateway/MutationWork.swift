import Model
import Postgres
import Realms

/// A plan on its way into a transaction and back. A person is one decision: their requests stand or fall together.
struct MutationWork {
    private let requests: [MutationRequest]
    private let plan: MutationPlan
    private let loaded: LoadedState
    /// Each person's own realm.
    private let realms: [Int32: Int32]
    private let decisions: [Int32: Int32]

    init(requests: [MutationRequest], plan: MutationPlan, loaded: LoadedState, realms: [Int32: Int32]) {
        self.requests = requests
        self.plan = plan
        self.loaded = loaded
        self.realms = realms
        var decisions: [Int32: Int32] = [:]
        for request in requests where decisions[request.person.id] == nil {
            decisions[request.person.id] = Int32(decisions.count)
        }
        self.decisions = decisions
    }

    private func decision(_ person: Int32) -> Int32 { decisions[person] ?? 0 }

    private func key(_ target: TargetKey) -> ObjectKey {
        ObjectKey(realm: realms[target.person] ?? 0, kind: target.kind, id: target.id)
    }

    /// An accepted mutation's position when its object was not written: where it is, or where it is known not to be.
    private func otherwise(_ target: TargetKey) -> Int64 {
        let position = plan.targets[target]?.loadedPosition ?? 0
        return position > 0 ? position : loaded.position
    }

    func batch(_ store: MutationStore) -> WriteBatch {
        var batch = WriteBatch(environment: store.environment)
        batch.traceparent = requests.lazy.compactMap(\.traceparent).first
        for (target, folded) in plan.targets {
            let decision = Int(decision(target.person))
            batch.expect(key(target), at: folded.loadedPosition, decision: decision)
            switch folded.write {
            case .put(let fields): batch.put(key(target), JSONBytes(fields), decision: decision, isEdit: true)
            case .patch(let fields): batch.patch(key(target), JSONBytes(fields), decision: decision, isEdit: true)
            case .delete: batch.delete(key(target), decision: decision, isEdit: true)
            case nil: break
            }
        }
        let clients = plan.nextSequences.map { ($0.key, $0.value, decision($0.key.person)) }
        if clients.isEmpty { return batch }
        batch.expect(store.guardStatement(clients.map { ($0.0, loaded.nextSequences[$0.0] ?? 1, $0.2) }))
        batch.also(store.keep(kept()))
        batch.also(store.advance(clients.map { (key: $0.0, next: $0.1, decision: $0.2) }))
        let old = clients.filter { $0.1 > store.answersKeptMax }
        if !old.isEmpty { batch.also(store.forget(old.map { (key: $0.0, next: $0.1) })) }
        return batch
    }

    private func kept() -> KeptAnswers {
        var kept = KeptAnswers()
        for (request, result) in zip(requests, plan.results) {
            guard case .answers(let answers) = result else { continue }
            let client = ClientKey(person: request.person.id, client: request.clientID)
            let decision = decision(request.person.id)
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
                if outcome.missed.contains(Int(decision(request.person.id))) { return .contended }
                let client = ClientKey(person: request.person.id, client: request.clientID)
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
