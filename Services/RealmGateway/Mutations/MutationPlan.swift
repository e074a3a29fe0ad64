import Access
import Audit
import Essentials
import FoundationEssentials
import Identity
import Model
import ObjectStore

/// What a mutation was answered.
enum MutationAnswer: Sendable, Equatable {
    case accepted(position: Int64)
    case rejected(Rejection)
}

/// A client of a caller. Two callers' clients with the same id are two clients.
struct ClientKey: Hashable, Sendable {
    let caller: Int32
    let client: UUID
}

/// An object of a batch.
struct TargetKey: Hashable, Sendable {
    let realm: RealmPath
    let kind: Kind
    let id: UUID
}

extension TargetKey {
    /// The referenced object.
    init(_ reference: OwnerRules.RequiredReference) {
        self.init(realm: .common, kind: reference.kind, id: reference.id)
    }
}

/// What was read before a batch is decided.
struct LoadedState: Sendable {
    struct Target: Sendable {
        var position: Int64
        var object: StoredObject
    }

    /// What the callers may do who write beyond their own realm.
    var access: [Caller: AccessState] = [:]
    /// The environment's counter, read first.
    var position: Int64 = 0
    var nextSequences: [ClientKey: Int64] = [:]
    var answers: [ClientKey: [Int64: MutationAnswer]] = [:]
    var targets: [TargetKey: Target] = [:]
    /// Read when a team may get a name.
    var teamNames: TeamNames?
    /// Lines of the status logs of entries that may go, by entry.
    var lines: [ObjectKey: [ObjectKey]] = [:]
}

/// One object's state while a batch is decided, and the one write that all mutations of it amount to.
struct FoldedTarget: Sendable {
    enum Write: Sendable, Equatable {
        case put([UInt8])
        case delete
        /// An object that did not exist becomes a tombstone. It is put first, with these fields.
        case putAndDelete([UInt8])
    }

    /// Kinds to which others refer. What refers to a deleted object is removed by the object's tombstone.
    private static let referencedKinds: Set<Kind> = [.appointment, .note, .person, .team]

    /// 0: it is not there.
    let loadedPosition: Int64
    /// What a writer may have seen; `nil` once this batch has changed the object.
    private(set) var position: Int64?
    private let wasLive: Bool
    private let isReferenced: Bool
    private(set) var object: StoredObject?
    private(set) var write: Write?

    init(_ loaded: LoadedState.Target?, _ kind: Kind) {
        isReferenced = Self.referencedKinds.contains(kind)
        loadedPosition = loaded?.position ?? 0
        position = loadedPosition
        object = loaded?.object
        wasLive = if case .live? = loaded?.object { true } else { false }
    }

    mutating func apply(_ change: MutationDecision.Change) throws(JSONProblem) {
        if change != .none { position = nil }
        switch change {
        case .none: return
        case .insert(let fields):
            object = .live(fields: fields)
            write = .put(fields)
        case .merge(let fields): try merge(fields)
        case .requestDeletion: try merge(Array("{\"deleteRequested\":true}".utf8))
        case .tombstone:
            // An object that was put and deleted within the batch leaves nothing, unless others may refer to it.
            write =
                switch object {
                case _ where wasLive: .delete
                case .live(let fields)? where isReferenced: .putAndDelete(fields)
                case .live, .tombstone, nil: nil
                }
            object = .tombstone
        }
    }

    private mutating func merge(_ fields: [UInt8]) throws(JSONProblem) {
        guard case .live(let stored) = object else { return }
        let whole = try JSONObject(stored).merging(try JSONObject(fields))
        object = .live(fields: whole)
        write = .put(whole)
    }
}

/// What one transaction does with several callers' requests: a pure function of the requests and what was loaded.
struct MutationPlan: Sendable {
    enum Result: Sendable {
        /// Nothing of the request is done.
        case gap(expected: Int64)
        case answers([Answer])
    }

    /// An answer that is known before the transaction, or that is the position of an object afterwards.
    enum Answer: Sendable {
        case again(MutationAnswer)
        case accepted(TargetKey)
        case rejected(Rejection)
    }

    private(set) var results: [Result] = []
    private(set) var targets: [TargetKey: FoldedTarget] = [:]
    /// The targets in the order of the last mutation of each: so they get their positions. Whoever works on a person's
    /// objects in turn goes by these.
    var inOrder: [TargetKey] { order.sorted { $0.value < $1.value }.map(\.key) }
    private var order: [TargetKey: Int] = [:]
    private var appliedCount = 0
    /// The sequence each client is to go on from, where that changes.
    private(set) var nextSequences: [ClientKey: Int64] = [:]
    /// Who wrote each target; a batch has one caller for each object.
    private(set) var writers: [TargetKey: Caller] = [:]
    /// The objects that accepted mutations refer to, with the callers of those mutations.
    private(set) var references: [TargetKey: Set<Caller>] = [:]
    /// The realms in which something is written.
    var written: Set<RealmPath> { Set(targets.lazy.filter { $0.value.write != nil }.map(\.key.realm)) }
    /// Lines that entries' status logs get, by entry.
    private(set) var lines: [TargetKey: TimeEntryStatus] = [:]
    /// What teams are called, with what was decided so far.
    private var teamNames: TeamNames?
    private let now: Timestamp
    /// Who gave a team a name; a batch has one caller who does.
    private(set) var namers: Set<Caller> = []
    /// What the audit log is to tell.
    private(set) var audit: [(caller: Caller, record: AuditRecord)] = []

    static let answerForgotten = Rejection(
        "answer-forgotten", "this mutation was decided before, but its answer is no longer kept")

    init(_ requests: [MutationRequest], _ loaded: LoadedState, now: Timestamp) {
        teamNames = loaded.teamNames
        self.now = now
        for request in requests { results.append(decide(request, loaded)) }
        for (key, target) in targets where key.kind == .timeEntry && target.write != nil {
            log(key, target, loaded)
        }
    }

    /// One line for what all of a person's mutations of an entry amount to. An integration writes the lines itself.
    private mutating func log(_ key: TargetKey, _ target: FoldedTarget, _ loaded: LoadedState) {
        guard writers[key]?.object != nil, case .live(let after)? = target.object else { return }
        let before: [UInt8]? = if case .live(let fields)? = loaded.targets[key]?.object { fields } else { nil }
        // What cannot be read was not changed.
        guard let line = try? EntryLog.line(of: key.id, before: before, after: after, now: now) else { return }
        lines[key] = line
        try? targets[key]?.apply(.merge(fields: EntryLog.fields(with: line)))
    }

    private mutating func decide(_ request: MutationRequest, _ loaded: LoadedState) -> Result {
        let client = ClientKey(caller: request.caller.id, client: request.clientID)
        let expected = loaded.nextSequences[client] ?? 1
        switch MutationQueue.plan(expected: expected, sequences: request.mutations.map(\.sequence)) {
        case .gap(let expected): return .gap(expected: expected)
        case .run(let steps):
            let answers = zip(request.mutations, steps).map { mutation, step in
                switch step {
                case .answerAgain:
                    Answer.again(loaded.answers[client]?[mutation.sequence] ?? .rejected(Self.answerForgotten))
                case .apply: apply(mutation, of: request, loaded)
                }
            }
            let count = steps.count { $0 == .apply }
            if count > 0 { nextSequences[client] = expected + Int64(count) }
            return .answers(answers)
        }
    }

    private mutating func apply(
        _ mutation: SubmittedMutation, of request: MutationRequest, _ loaded: LoadedState
    ) -> Answer {
        switch mutation.intent {
        case .refused(let rejection): return .rejected(rejection)
        case .change(let realm, let change):
            let caller = request.caller
            let state = loaded.access[caller] ?? AccessState(caller)
            guard isThere(realm, state) else {
                return .rejected(Rejection(MutationProblem(.realmNotPermitted, "there is no such team")))
            }
            let key = TargetKey(realm: realm, kind: change.kind, id: change.id)
            var target = targets[key] ?? FoldedTarget(loaded.targets[key], change.kind)
            let before = target.object
            let author = caller.author(state.access(to: realm), laterEmail: request.laterEmail)
            switch MutationRules.decide(
                change, current: before, at: target.position, in: realm.realmClass, by: author,
                now: now)
            {
            case .reject(let problem): return .rejected(Rejection(problem))
            case .accept(let decided):
                let required = change.requiredReferences
                if let missing = required.first(where: { !exists(TargetKey($0), for: caller, loaded) }) {
                    return .rejected(Rejection(MutationProblem(.invalidField, missing.problem)))
                }
                do { try target.apply(decided) } catch {
                    return .rejected(Rejection("unreadable", "the stored object cannot be read: \(error)"))
                }
                if let problem = name(target, key, by: caller) { return .rejected(Rejection(problem)) }
                targets[key] = target
                appliedCount += 1
                order[key] = appliedCount
                writers[key] = caller
                for reference in required { references[TargetKey(reference), default: []].insert(caller) }
                let told = PermissionAudit(change, in: realm, before: before, after: target.object, request)
                if decided != .none, let record = told.record { audit.append((caller, record)) }
                return .accepted(key)
            }
        }
    }

    /// Notes what a team is called from now on.
    ///
    /// - Returns: Why it may not be.
    private mutating func name(_ target: FoldedTarget, _ key: TargetKey, by caller: Caller) -> MutationProblem? {
        guard key.kind == .team, key.realm == .common, teamNames != nil else { return nil }
        var name: String?
        if case .live(let fields)? = target.object { name = TeamNames.name(fields) }
        if let name, let problem = teamNames?.objection(to: name, of: key.id) { return problem }
        if teamNames?.set(name, of: key.id) == true { namers.insert(caller) }
        return nil
    }

    /// Whether an object exists after what the same caller did before in this batch. Other callers' writes do not
    /// count: their decisions may miss.
    private func exists(_ key: TargetKey, for caller: Caller, _ loaded: LoadedState) -> Bool {
        let object = writers[key] == caller ? targets[key]?.object : loaded.targets[key]?.object
        return if case .live? = object { true } else { false }
    }

    /// A team that comes or goes in the same batch counts: its tasks follow it in the queue of who made it.
    private func isThere(_ realm: RealmPath, _ state: AccessState) -> Bool {
        guard case .team(let id) = realm.realmClass,
            let team = targets[TargetKey(realm: .common, kind: .team, id: id)]
        else { return state.isThere(realm) }
        return if case .live? = team.object { true } else { false }
    }
}
