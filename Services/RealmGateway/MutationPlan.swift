import FoundationEssentials
import Model

/// What a mutation was answered.
enum MutationAnswer: Sendable, Equatable {
    case accepted(position: Int64)
    case rejected(Rejection)
}

/// A client of a person. Two people's clients with the same id are two clients.
struct ClientKey: Hashable, Sendable {
    let person: Int32
    let client: UUID
}

/// An object of a batch: its person's own realm, kind and id.
struct TargetKey: Hashable, Sendable {
    let person: Int32
    let kind: Kind
    let id: UUID
}

/// What was read before a batch is decided.
struct LoadedState: Sendable {
    struct Target: Sendable {
        var position: Int64
        var object: Model.StoredObject
    }

    /// The environment's counter, read first.
    var position: Int64 = 0
    var nextSequences: [ClientKey: Int64] = [:]
    var answers: [ClientKey: [Int64: MutationAnswer]] = [:]
    var targets: [TargetKey: Target] = [:]
}

/// One object's state while a batch is decided, and the one write that all mutations of it amount to.
struct FoldedTarget: Sendable {
    enum Write: Sendable, Equatable {
        case put([UInt8])
        case patch([UInt8])
        case delete
    }

    /// 0: it is not there.
    let loadedPosition: Int64
    private(set) var object: Model.StoredObject?
    private(set) var write: Write?

    init(_ loaded: LoadedState.Target?) {
        loadedPosition = loaded?.position ?? 0
        object = loaded?.object
    }

    mutating func apply(_ change: MutationDecision.Change) throws(JSONProblem) {
        switch change {
        case .none: return
        case .insert(let fields):
            object = .live(fields: fields)
            write = .put(fields)
        case .merge(let fields): try merge(fields)
        case .requestDeletion: try merge(Array("{\"deleteRequested\":true}".utf8))
        case .tombstone:
            object = .tombstone
            // What came and went within the batch was never there.
            if case .put = write { write = nil } else { write = .delete }
        }
    }

    private mutating func merge(_ fields: [UInt8]) throws(JSONProblem) {
        guard case .live(let stored) = object else { return }
        let whole = try JSONObject(stored).merging(try JSONObject(fields))
        object = .live(fields: whole)
        switch write {
        case .put: write = .put(whole)
        case .patch(let before): write = .patch(try JSONObject(before).merging(try JSONObject(fields)))
        case nil, .delete: write = .patch(fields)
        }
    }
}

/// What one transaction does with several people's requests: a pure function of the requests and what was loaded.
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
    /// The sequence each client is to go on from, where that changes.
    private(set) var nextSequences: [ClientKey: Int64] = [:]

    static let answerForgotten = Rejection(
        "answer-forgotten", "this mutation was decided before, but its answer is no longer kept")

    init(_ requests: [MutationRequest], _ loaded: LoadedState) {
        for request in requests { results.append(decide(request, loaded)) }
    }

    private mutating func decide(_ request: MutationRequest, _ loaded: LoadedState) -> Result {
        let client = ClientKey(person: request.person.id, client: request.clientID)
        let expected = loaded.nextSequences[client] ?? 1
        switch MutationQueue.plan(expected: expected, sequences: request.mutations.map(\.sequence)) {
        case .gap(let expected): return .gap(expected: expected)
        case .run(let steps):
            let answers = zip(request.mutations, steps).map { mutation, step in
                switch step {
                case .answerAgain:
                    Answer.again(loaded.answers[client]?[mutation.sequence] ?? .rejected(Self.answerForgotten))
                case .apply: apply(mutation, of: request.person, loaded)
                }
            }
            let count = steps.count { $0 == .apply }
            if count > 0 { nextSequences[client] = expected + Int64(count) }
            return .answers(answers)
        }
    }

    private mutating func apply(_ mutation: SubmittedMutation, of person: Person, _ loaded: LoadedState) -> Answer {
        switch mutation.intent {
        case .refused(let rejection): return .rejected(rejection)
        case .change(let change):
            let key = TargetKey(person: person.id, kind: change.kind, id: change.id)
            var target = targets[key] ?? FoldedTarget(loaded.targets[key])
            defer { targets[key] = target }
            switch MutationRules.decide(change, current: target.object) {
            case .reject(let problem): return .rejected(Rejection(problem))
            case .accept(let change):
                do { try target.apply(change) } catch {
                    return .rejected(Rejection("unreadable", "the stored object cannot be read: \(error)"))
                }
                return .accepted(key)
            }
        }
    }
}
