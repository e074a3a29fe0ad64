import Access
import Audit
import Essentials
import FoundationEssentials
import Model
import ObjectStore

/// A client of a caller. Clients of different callers are distinct, even with the same id.
struct ClientKey: Hashable, Sendable {
    let caller: Int32
    let client: UUID
}

/// The path of an object in a batch.
struct TargetKey: Hashable, Sendable {
    let realm: RealmPath
    let kind: Kind
    let id: UUID
}

extension TargetKey {
    /// Creates the key of a referenced object.
    ///
    /// - Parameter realm: The realm of the referring object.
    init(_ reference: OwnerRules.RequiredReference, from realm: RealmPath) {
        self.init(realm: reference.isInReferringRealm ? realm : .common, kind: reference.kind, id: reference.id)
    }
}

/// The state that a batch's decisions are based on.
struct BatchState: Sendable {
    struct Target: Sendable {
        var position: Int64
        var object: StoredObject
    }

    /// The permissions of callers that write to other realms than their own.
    var access: [Caller: AccessState] = [:]
    /// The environment's position counter, read first.
    var position: Int64 = 0
    /// The version of the environment's kinds; loaded only if a request depends on it.
    var kindsVersion: Int32?
    var nextSequences: [ClientKey: Int64] = [:]
    var storedResults: [ClientKey: [Int64: MutationResult]] = [:]
    var targets: [TargetKey: Target] = [:]
    /// Loaded only if a mutation names a team.
    var teamNames: TeamNames?
    /// Status-log lines of the entries that may be deleted, by entry.
    var lines: [ObjectKey: [ObjectKey]] = [:]
}

/// An object's state while a batch is decided, and the single write that all its mutations result in.
struct TargetState: Sendable {
    enum Write: Sendable, Equatable {
        case put([UInt8])
        case delete
        /// The object did not exist and becomes a tombstone. It is put with these fields first.
        case putAndDelete([UInt8])
    }

    /// Kinds that other objects refer to. The object's tombstone triggers the removal of references to it.
    private static let referencedKinds: Set<Kind> = [.appointment, .note, .person, .team]

    /// The caller of all its mutations; a batch has one per object.
    let writer: Caller
    /// The number of its last accepted mutation in the batch.
    var lastMutation = 0
    /// 0 if the object does not exist.
    let loadedPosition: Int64
    /// The version that a writer may have read; `nil` once this batch has changed the object.
    private(set) var position: Int64?
    private let wasLive: Bool
    private let isReferenced: Bool
    private(set) var object: StoredObject?
    private(set) var write: Write?
    /// The fields before the last deletion in the batch.
    private(set) var deletedFields: [UInt8]?
    /// Whether the object may have been deleted before this batch.
    private(set) var isRestored = false

    init(_ loaded: BatchState.Target?, _ kind: Kind, by writer: Caller) {
        self.writer = writer
        isReferenced = Self.referencedKinds.contains(kind)
        loadedPosition = loaded?.position ?? 0
        position = loadedPosition
        object = loaded?.object
        wasLive = loaded?.object.fields != nil
    }

    /// - Parameter restores: Whether the mutation may restore a deleted object.
    mutating func apply(_ change: MutationChange, restores: Bool = false) throws(JSONError) {
        if change != .unchanged { position = nil }
        switch change {
        case .unchanged: return
        case .insert(let fields):
            if restores || loadedPosition > 0 && !wasLive { isRestored = true }
            object = .live(fields: fields)
            write = .put(fields)
        case .merge(let fields): try merge(fields)
        case .requestDeletion: try merge(Array("{\"deleteRequested\":true}".utf8))
        case .tombstone:
            deletedFields = object?.fields ?? deletedFields
            // An object that was put and deleted within the batch leaves no trace, unless others may refer to it.
            write =
                switch object {
                case _ where wasLive: .delete
                case .live(let fields)? where isReferenced: .putAndDelete(fields)
                case .live, .tombstone, nil: nil
                }
            object = .tombstone
        }
    }

    private mutating func merge(_ fields: [UInt8]) throws(JSONError) {
        guard let stored = object?.fields else { return }
        let whole = try JSONObject(stored).merging(try JSONObject(fields))
        object = .live(fields: whole)
        write = .put(whole)
    }
}

/// The decisions of one transaction about several callers' requests: a pure function of the requests and the loaded
/// state.
struct MutationPlan: Sendable {
    /// The results of a request, as far as they are decided before the commit.
    struct RequestPlan: Sendable {
        /// The results of the mutations that were processed before; the others follow them.
        var replayed: [MutationResult]
        /// The results of new mutations: an accepted one gets its object's position.
        var decided: [Result<TargetKey, Rejection>]
    }

    /// One plan per request; `nil` if a sequence is missing: nothing of the request is applied.
    private(set) var requests: [RequestPlan?] = []
    private(set) var targets: [TargetKey: TargetState] = [:]
    /// The targets in the order of each one's last mutation, which is the order of their positions. Workers process a
    /// person's objects in this order.
    var orderedTargets: [(key: TargetKey, value: TargetState)] {
        targets.sorted { $0.value.lastMutation < $1.value.lastMutation }
    }
    private var acceptedCount = 0
    /// The next sequence of each client, if it changes.
    private(set) var nextSequences: [ClientKey: Int64] = [:]
    /// The objects that accepted mutations refer to, with the callers of those mutations.
    private(set) var references: [TargetKey: Set<Caller>] = [:]
    /// The realms that the batch writes to.
    var writtenRealms: Set<RealmPath> { Set(targets.lazy.filter { $0.value.write != nil }.map(\.key.realm)) }
    /// New status-log lines, by entry.
    private(set) var lines: [TargetKey: TimeEntryStatus] = [:]
    /// The teams' names, including the decisions so far.
    private var teamNames: TeamNames?
    /// The time of the decisions.
    let now: Timestamp
    /// The caller that named a team; a batch has at most one.
    private(set) var namers: Set<Caller> = []
    /// The records for the audit log.
    private(set) var audit: [(caller: Caller, record: AuditRecord)] = []

    private static let resultExpired = Rejection(
        MutationProblem(.resultExpired, "this mutation was processed before, and its result is no longer stored"))

    init(_ requests: [MutationRequest], _ loaded: BatchState, now: Timestamp) {
        teamNames = loaded.teamNames
        self.now = now
        for request in requests { self.requests.append(decide(request, loaded)) }
        for (key, target) in targets where key.kind == .timeEntry && target.write != nil {
            log(key, target, loaded)
        }
    }

    /// Adds one status-log line for all of a person's mutations of an entry. An integration writes the lines itself.
    private mutating func log(_ key: TargetKey, _ target: TargetState, _ loaded: BatchState) {
        guard target.writer.object != nil, let after = target.object?.fields else { return }
        let before = loaded.targets[key]?.object.fields
        // Unreadable fields were not changed.
        guard let line = try? EntryLog.line(of: key.id, before: before, after: after, now: now) else { return }
        lines[key] = line
        try? targets[key]?.apply(.merge(fields: EntryLog.fields(with: line)))
    }

    private mutating func decide(_ request: MutationRequest, _ loaded: BatchState) -> RequestPlan? {
        let client = request.client
        let expected = loaded.nextSequences[client] ?? 1
        guard let replayCount = request.replayCount(expected: expected) else { return nil }
        let stored = loaded.storedResults[client] ?? [:]
        let replayed = request.mutations.prefix(replayCount).map { stored[$0.sequence] ?? .failure(Self.resultExpired) }
        let decided = request.mutations.dropFirst(replayCount).map { submitted in
            Result { () throws(MutationProblem) in try apply(submitted.content.get(), of: request, loaded) }
                .mapError { Rejection($0) }
        }
        if let last = request.mutations.last, !decided.isEmpty { nextSequences[client] = last.sequence + 1 }
        return RequestPlan(replayed: replayed, decided: decided)
    }

    /// Applies a mutation to the batch's state.
    ///
    /// - Returns: The accepted mutation's object.
    private mutating func apply(
        _ write: RealmMutation, of request: MutationRequest, _ loaded: BatchState
    ) throws(MutationProblem) -> TargetKey {
        let (caller, realm, mutation) = (request.caller, write.realm, write.mutation)
        let state = loaded.access[caller] ?? AccessState(caller)
        guard exists(realm, state) else { throw MutationProblem(.realmNotPermitted, "there is no such team") }
        let key = TargetKey(realm: realm, kind: mutation.kind, id: mutation.id)
        var target = targets[key] ?? TargetState(loaded.targets[key], mutation.kind, by: caller)
        assert(target.writer.id == caller.id, "a batch has one caller per object")
        let before = target.object
        let author = caller.author(state.access(to: realm), laterEmail: request.laterEmail)
        let change = try MutationRules.decide(
            mutation, current: before, at: target.position, in: realm.realmClass, by: author, now: now)
        let required = mutation.requiredReferences
        if let missing = required.first(where: { !exists(TargetKey($0, from: realm), for: caller, loaded) }) {
            throw MutationProblem(.invalidField, missing.problem)
        }
        do { try target.apply(change, restores: mutation.restores) } catch {
            throw MutationRules.unreadable("\(error)")
        }
        if let problem = name(target, key, by: caller) { throw problem }
        acceptedCount += 1
        target.lastMutation = acceptedCount
        targets[key] = target
        for reference in required { references[TargetKey(reference, from: realm), default: []].insert(caller) }
        let audited = PermissionAudit(mutation, in: realm, before: before, after: target.object, request)
        if change != .unchanged, let record = audited.record { audit.append((caller, record)) }
        return key
    }

    /// Records the new name of a team.
    ///
    /// - Returns: The reason why the team may not have this name, or `nil`.
    private mutating func name(_ target: TargetState, _ key: TargetKey, by caller: Caller) -> MutationProblem? {
        guard key.kind == .team, key.realm == .common, teamNames != nil else { return nil }
        let name = target.object?.fields.flatMap(TeamNames.name)
        if let name, let problem = teamNames?.objection(to: name, of: key.id) { return problem }
        if teamNames?.set(name, of: key.id) == true { namers.insert(caller) }
        return nil
    }

    /// Returns whether an object exists, given the same caller's earlier mutations in this batch. Other callers' writes
    /// do not count: they may still conflict.
    private func exists(_ key: TargetKey, for caller: Caller, _ loaded: BatchState) -> Bool {
        if let target = targets[key], target.writer == caller { return target.object?.fields != nil }
        return loaded.targets[key]?.object.fields != nil
    }

    /// Returns whether a realm exists. A team that is created or deleted in the same batch counts: mutations of its
    /// realm follow it in the queue of its creator.
    private func exists(_ realm: RealmPath, _ state: AccessState) -> Bool {
        guard case .team(let id) = realm.realmClass,
            let team = targets[TargetKey(realm: .common, kind: .team, id: id)]
        else { return state.isThere(realm) }
        return team.object?.fields != nil
    }
}
