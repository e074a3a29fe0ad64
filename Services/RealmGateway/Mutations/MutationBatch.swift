import Access
import Audit
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Several callers' requests in one transaction: at most one per client, and one caller per object.
struct MutationBatch: Sendable {
    /// Maximum number of optimistic-concurrency retries before 503.
    static let attemptsMax = 8

    enum Outcome: Sendable {
        /// A sequence is missing; nothing of the request was applied.
        case gap(expected: Int64)
        /// One result per mutation, and the client's next sequence.
        case results([MutationResult], next: Int64)
        /// Every attempt conflicted with another transaction. Not a device's `version-conflict`: see `MutationRules`.
        case conflicted
        /// The integration was removed.
        case callerRemoved
        /// The environment's kinds have another version than those by which the request was parsed.
        case kindsChanged
    }

    let store: MutationStore
    let numbers: RealmNumbers

    /// Decides and commits the requests. Returns one outcome per request.
    ///
    /// A value that PostgreSQL rejects causes the rejection of its mutation only: the batch is bisected until that
    /// mutation is isolated.
    func run(_ requests: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        do {
            return try attempt(requests, on: &connection)
        } catch let error as PostgresError where error.isDataError {
            if requests.count > 1 {
                let middle = requests.count / 2
                return try run(Array(requests[..<middle]), on: &connection)
                    + run(Array(requests[middle...]), on: &connection)
            }
            return [try bisect(requests[0], error, on: &connection)]
        }
    }

    private func bisect(
        _ request: MutationRequest, _ error: PostgresError, on connection: inout Connection
    ) throws -> Outcome {
        let count = request.mutations.count
        if count == 1 {
            let problem = MutationProblem(.dataRefused, "the database rejects this value: \(error.message)")
            let rejected = SubmittedMutation(sequence: request.mutations[0].sequence, content: .failure(problem))
            return try attempt([request.with([rejected])], on: &connection)[0]
        }
        let first = try run([request.with(request.mutations[..<(count / 2)])], on: &connection)[0]
        guard case .results(let before, _) = first else { return first }
        let second = try run([request.with(request.mutations[(count / 2)...])], on: &connection)[0]
        guard case .results(let after, let next) = second else { return second }
        return .results(before + after, next: next)
    }

    private func attempt(_ requests: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        var outcomes = [Outcome](repeating: .conflicted, count: requests.count)
        var open = Array(requests.indices)
        for _ in 0..<Self.attemptsMax where !open.isEmpty {
            let pending = open.map { requests[$0] }
            do {
                for (index, outcome) in zip(open, try decide(pending, on: &connection)) { outcomes[index] = outcome }
            } catch let error as PostgresError where error.isRetriable {
                // The commit may have succeeded. The retry detects that by the clients' sequences.
                guard error.isConnectionLost || error.sqlState?.hasPrefix("40") == true else { throw error }
            }
            open = open.filter { if case .conflicted = outcomes[$0] { true } else { false } }
        }
        return outcomes
    }

    /// Loads, decides and commits once. A failed version check gives `conflicted`.
    private func decide(_ all: [MutationRequest], on connection: inout Connection) throws -> [Outcome] {
        let access = try access(of: all, on: &connection)
        let permitted = all.filter { access[$0.caller]?.isRemoved != true }
        var realms = try numbers.numbers(
            of: Self.permitted(permitted, access), in: store.environment, create: false, on: &connection)
        var loaded = try store.load(permitted, realms: realms, on: &connection)
        loaded.access = access
        let requests = permitted.filter { [nil, loaded.kindsVersion].contains($0.kindsVersion) }
        let plan = MutationPlan(requests, loaded, now: .now())
        let new = plan.writtenRealms.filter { realms[$0] == nil }
        if !new.isEmpty {
            let made = try numbers.numbers(of: new, in: store.environment, create: true, on: &connection)
            realms.merge(made) { old, _ in old }
        }
        let transaction = MutationTransaction(requests: requests, plan: plan, loaded: loaded, realms: realms)
        let outcome = try transaction.batch(store).commit(on: &connection)
        var outcomes = transaction.outcomes(outcome)[...]
        return all.map { request in
            if access[request.caller]?.isRemoved == true { return .callerRemoved }
            return [nil, loaded.kindsVersion].contains(request.kindsVersion) ? outcomes.removeFirst() : .kindsChanged
        }
    }

    /// Loads the permissions of the callers that write to other realms than their own.
    private func access(
        of requests: [MutationRequest], on connection: inout Connection
    ) throws -> [Caller: AccessState] {
        let callers = Dictionary(
            grouping: requests.filter { $0.writesOtherRealms || $0.caller.object == nil }, by: \.caller)
        if callers.isEmpty { return [:] }
        var readers: [AccessReader] = []
        for (caller, requests) in callers {
            let named = requests.reduce(into: Set<RealmPath>()) { $0.formUnion($1.realms) }
            readers.append(try AccessReader(caller, named: Array(named), numbers, on: &connection))
        }
        let results = try connection.run(readers.flatMap(\.statements))
        var access: [Caller: AccessState] = [:]
        for (index, reader) in readers.enumerated() {
            access[reader.caller] = try reader.state(results[(2 * index)..<(2 * index + 2)])
        }
        return access
    }

    /// Returns the realms to read. A realm that does not exist has no objects; it is created by the first write.
    private static func permitted(_ requests: [MutationRequest], _ access: [Caller: AccessState]) -> [RealmPath] {
        var paths: Set<RealmPath> = access.isEmpty ? [] : [.common]
        for request in requests {
            let state = access[request.caller] ?? AccessState(request.caller)
            for write in request.writes {
                if state.isPermitted(write.realm) { paths.insert(write.realm) }
                // The copy of a share that its person ends.
                if write.mutation.kind == .share, let own = request.caller.own { paths.insert(own) }
                if write.mutation.hasRequiredReferences { paths.insert(.common) }
            }
        }
        return Array(paths)
    }
}

/// The writes of a plan, and its outcome after the commit. All requests of a caller are one decision: they succeed or
/// conflict together.
struct MutationTransaction {
    private let requests: [MutationRequest]
    let plan: MutationPlan
    private let loaded: BatchState
    let realms: [RealmPath: Int32]
    private var decisions: [Caller: Int32] = [:]

    init(requests: [MutationRequest], plan: MutationPlan, loaded: BatchState, realms: [RealmPath: Int32]) {
        self.requests = requests
        self.plan = plan
        self.loaded = loaded
        self.realms = realms
        for request in requests where decisions[request.caller] == nil {
            decisions[request.caller] = Int32(decisions.count)
        }
    }

    func decision(_ caller: Caller) -> Int32 { decisions[caller] ?? 0 }

    private func decision(_ target: TargetKey) -> Int32 { plan.targets[target].map { decision($0.writer) } ?? 0 }

    func key(_ target: TargetKey) -> ObjectKey {
        ObjectKey(realm: realms[target.realm] ?? 0, kind: target.kind, id: target.id)
    }

    /// Returns the position of an object that was not written: its own, or one at which it did not exist.
    private func unchangedPosition(_ target: TargetKey) -> Int64 {
        let position = plan.targets[target]?.loadedPosition ?? 0
        return position > 0 ? position : loaded.position
    }

    func batch(_ store: MutationStore) throws -> WriteBatch {
        var batch = WriteBatch(environment: store.environment)
        for request in requests where request.traceparent != nil {
            batch.trace(request.traceparent, decision: Int(decision(request.caller)))
        }
        let deleted = Set(plan.targets.lazy.filter { $0.value.write == .delete }.map { key($0.key) })
        for (target, state) in plan.orderedTargets {
            let (key, decision) = (key(target), Int(decision(state.writer)))
            batch.expect(key, at: state.loadedPosition, decision: decision)
            switch state.write {
            case .put(let fields):
                batch.put(key, try CanonicalJSON(fields), decision: decision, isEdit: true)
            case .delete:
                batch.delete(key, decision: decision, isEdit: true)
                for line in loaded.lines[key] ?? [] where !deleted.contains(line) {
                    batch.delete(line, decision: decision)
                }
            case .putAndDelete(let fields):
                batch.put(key, try CanonicalJSON(fields), decision: decision, isEdit: true)
                batch.delete(key, decision: decision, isEdit: true)
            case nil: break
            }
        }
        let encoder = JSONEncoder()
        for (entry, line) in plan.lines {
            let key = ObjectKey(realm: key(entry).realm, kind: .timeEntryStatus, id: UUID())
            batch.put(key, try CanonicalJSON(encoding: line, by: encoder), decision: Int(decision(entry)))
        }
        try retainDeleted(in: &batch)
        recordTaskAuthors(in: &batch, store)
        checkReferences(in: &batch)
        checkPermissions(in: &batch, store)
        if !plan.namers.isEmpty, let common = realms[.common] {
            batch.expect(
                TeamNames.conflictIfChanged(
                    since: loaded.position, plan.namers.map(decision), common: common, in: store.environment))
        }
        let versions = requests.compactMap { request in
            request.kindsVersion.map { (decision: decision(request.caller), version: $0) }
        }
        if !versions.isEmpty { batch.expect(KindCatalogue.missOutdated(versions, in: store.environment)) }
        let numbers = Dictionary(decisions.map { ($0.key.id, $0.value) }) { first, _ in first }
        let clients = plan.nextSequences.map { client, next in
            SequenceAdvance(
                key: client, expected: loaded.nextSequences[client] ?? 1, next: next,
                decision: numbers[client.caller] ?? 0)
        }
        if clients.isEmpty { return batch }
        batch.expect(store.checkSequences(clients))
        batch.append(store.insert(resultRows()))
        batch.append(store.advance(clients))
        let old = clients.filter { $0.next > store.storedResultCountMax }
        if !old.isEmpty { batch.append(store.deleteExpiredResults(old)) }
        return batch
    }

    /// Records who changed or deleted master tasks: people get no notice of their own acts, and a tombstone does not
    /// have its author.
    private func recordTaskAuthors(in batch: inout WriteBatch, _ store: MutationStore) {
        var authors = TaskAuthorRows()
        for (target, state) in plan.orderedTargets
        where target.realm == .manager && target.kind == .fieldTask && state.write != nil {
            authors.append(target.id, by: state.writer.object, decision(state.writer))
        }
        if authors.count > 0, let manager = realms[.manager] {
            batch.append(store.record(authors, manager: manager))
        }
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
        let written = Set(plan.targets.map { Permitted(caller: $0.value.writer, realm: $0.key.realm) })
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
            batch.append(
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
            let (client, decision) = (request.client, decision(request.caller))
            for (mutation, result) in zip(request.mutations.dropFirst(planned.replayed.count), planned.decided) {
                switch result {
                case .success(let target):
                    rows.accept(
                        client, mutation.sequence, decision: decision, object: key(target),
                        unchangedPosition: unchangedPosition(target))
                case .failure(let rejection): rows.reject(client, mutation.sequence, decision: decision, rejection)
                }
            }
        }
        return rows
    }

    func outcomes(_ outcome: WriteOutcome) -> [MutationBatch.Outcome] {
        zip(requests, plan.requests).map { request, planned in
            let next = plan.nextSequences[request.client] ?? loaded.nextSequences[request.client] ?? 1
            guard let planned else { return .gap(expected: next) }
            if outcome.conflicts.contains(Int(decision(request.caller))) { return .conflicted }
            let decided = planned.decided.map { result in
                result.map { outcome.positions[key($0)] ?? unchangedPosition($0) }
            }
            return .results(planned.replayed + decided, next: next)
        }
    }
}

extension MutationRequest {
    fileprivate func with(_ mutations: some Sequence<SubmittedMutation>) -> MutationRequest {
        MutationRequest(
            caller: caller, laterEmail: laterEmail, address: address, clientID: clientID, traceparent: traceparent,
            mutations: Array(mutations), kindsVersion: kindsVersion, allowsGaps: allowsGaps)
    }
}
