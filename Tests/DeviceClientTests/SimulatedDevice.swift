import Essentials
import FoundationEssentials
import Model

@testable import DeviceClient

/// A phone's library, optionally with a mistake: its input and output are modified.
struct SimulatedDevice {
    private(set) var state: DeviceState
    let mistake: Mistake?
    private var lineCount = 0
    /// The objects received since the last checkpoint.
    private var arrived: [(realm: RealmPath, list: [SyncLine.Change])] = []
    /// A line that is processed later than it arrived.
    private var held: SyncLine?
    /// Cursors sent instead of the library's own.
    private var cursors: [RealmPath: String] = [:]
    private var isUnanswered = false
    private var rejected: Set<ObjectAddress> = []

    init(_ state: DeviceState, mistake: Mistake?) {
        self.state = state
        self.mistake = mistake
    }

    /// Restarts from a stored state; some mistakes persist.
    mutating func wake(from stored: SimulatedDevice) {
        let cursors = cursors
        self = stored
        if mistake == .keepsCursorOnKill { self.cursors = cursors }
    }

    // MARK: The stream

    /// Returns the realms named in a request for a stream.
    mutating func named(countMax: Int) throws -> [RealmPath: String?] {
        held = nil
        let isCut = mistake == .keepsUnnamed
        let body = try JSONObject(state.syncRequest(isLive: true, realmCountMax: isCut ? .max : countMax))
        let realms = try body.value(of: "realms").map { try JSONObject(Array($0)) }
        var named: [RealmPath: String?] = [:]
        for member in realms?.members ?? [] {
            named[try RealmPath(validating: member.key)] = .some(realms?.text(of: member))
        }
        let held = state.copy.contents.mapValues(\.count)
        let leastLast = named.keys.sorted { (held[$1] ?? 0, $0) < (held[$0] ?? 0, $1) }
        for realm in leastLast.dropFirst(countMax) { named[realm] = nil }
        for (realm, cursor) in cursors { named[realm] = cursor }
        return named
    }

    mutating func take(_ line: SyncLine) {
        lineCount += 1
        for line in received(line) { _ = state.take(line) }
        record(line)
    }

    private mutating func received(_ line: SyncLine) -> [SyncLine] {
        switch (mistake, line) {
        case (.showsAtOnce, .objects):
            return [line, .checkpoint(position: state.copy.position, cursor: nil, cursors: [:])]
        case (.showsHalf, .objects):
            defer { held = line }
            return held.map { [$0] } ?? []
        case (.showsHalf, .checkpoint):
            defer { held = nil }
            return [line] + (held.map { [$0] } ?? [])
        case (.losesALine, .objects): return lineCount % 10 == 0 ? [] : [line]
        case (.keepsTombstones, .objects(let realm, let cursor, let list)):
            return [.objects(realm, cursor: cursor, list.filter { $0.object != nil })]
        case (.keepsOlder, .objects(let realm, let cursor, let list)):
            let first = arrived.reversed().filter { $0.realm == realm }.flatMap(\.list)
            return [.objects(realm, cursor: cursor, list.map { new in first.last { $0.id == new.id } ?? new })]
        case (.keepsContentOnReset, .open(let realm, isReset: true)):
            let content = state.copy.contents[realm] ?? [:]
            return [line, .objects(realm, cursor: nil, content.map { SyncLine.Change(id: $0.key, object: $0.value) })]
        case (.keepsStagedOnReset, .open(let realm, isReset: true)):
            return [line] + arrived.filter { $0.realm == realm }.map { .objects(realm, cursor: nil, $0.list) }
        case (.keepsClosed, .closed): return []
        case (.keepsCursorOfClosed, .closed(let realm)):
            if case .some(.some(let cursor)) = state.copy.cursors[realm] { cursors[realm] = cursor }
            return [line]
        default: return [line]
        }
    }

    private mutating func record(_ line: SyncLine) {
        switch line {
        case .objects(let realm, _, let list): arrived.append((realm, list))
        case .checkpoint: arrived = []
        case .open(let realm, isReset: true): cursors[realm] = nil
        case .open, .closed, .keepalive: break
        }
        if mistake == .keepsCursorOnKill { cursors = state.copy.cursors.compactMapValues { $0 } }
    }

    // MARK: Mutations

    mutating func enqueue(_ mutation: Mutation, in realm: RealmPath) throws {
        _ = try state.enqueue(mutation, in: realm)
    }

    mutating func nextRequest(countMax: Int = DeviceQueue.batchCountMax) throws -> QueueRequest? {
        let waiting = state.queue.storedMutations.first { $0.outcome == nil }
        if mistake == .numbersAgain, isUnanswered, let waiting { try enqueue(waiting.mutation, in: waiting.realm) }
        guard let request = state.nextRequest(countMax: countMax) else { return nil }
        isUnanswered = true
        var mutations = request.mutations
        switch mistake {
        case .losesOrder where mutations.count > 1:
            let (first, second) = (mutations[0], mutations[1])
            mutations[0] = QueuedMutation(sequence: first.sequence, realm: second.realm, mutation: second.mutation)
            mutations[1] = QueuedMutation(sequence: second.sequence, realm: first.realm, mutation: first.mutation)
        case .omitsQuery where request.isQuery:
            mutations.removeFirst()
            if mutations.isEmpty { return nil }
        default: break
        }
        return QueueRequest(
            number: request.number, resetCount: request.resetCount, isQuery: request.isQuery,
            mutations: mutations, body: request.body)
    }

    mutating func take(_ answer: QueueResponse, to request: QueueRequest, newClientID: UUID) -> DeviceState.Update {
        isUnanswered = false
        let update = state.take(received(answer, to: request), to: request, newClientID: newClientID)
        for item in update.answers where item.isRejected { rejected.insert(item.address) }
        return update
    }

    private func received(_ answer: QueueResponse, to request: QueueRequest) -> QueueResponse {
        switch (mistake, answer) {
        case (.miscountsGap, .gap(let expected)): return .gap(expectedSequence: expected + 1)
        case (.takesGapForClone, .gap): return .gap(expectedSequence: .max)
        case (_, .gap): return answer
        case (_, .results(var outcomes, let expected)):
            switch mistake {
            case .losesLastResult: outcomes[request.mutations.last?.sequence ?? 0] = nil
            case .losesRejections:
                outcomes = outcomes.mapValues { if case .rejected = $0 { .accepted(position: 0) } else { $0 } }
            case .ignoresQueryResult where request.isQuery:
                let last = request.mutations.first
                outcomes[last?.sequence ?? 0] = last?.outcome
            default: break
            }
            return .results(outcomes, expectedSequence: expected)
        }
    }

    // MARK: Shown objects

    subscript(realm: RealmPath, object: ObjectID) -> DeviceObject? { content(of: realm)[object] }

    func content(of realm: RealmPath) -> RealmContent {
        guard let mistake, mistake.isOfTheView else { return state.content(of: realm) }
        var content = state.copy.contents[realm] ?? [:]
        for item in state.queue.storedMutations where item.realm == realm && isOnTop(item, mistake) {
            let old = content[item.address.object]
            let fields = OptimisticRules.fields(after: item.mutation, of: old?.fields)
            content[item.address.object] = fields.map { DeviceObject(position: old?.position ?? 0, fields: $0) }
        }
        return content
    }

    private func isOnTop(_ item: QueuedMutation, _ mistake: Mistake) -> Bool {
        let isPending =
            switch item.outcome {
            case nil: true
            case .accepted(let position): position > state.copy.position
            case .rejected, .expired: false
            }
        return switch mistake {
        case .showsCopy: false
        case .dropsCompleted: item.outcome == nil
        case .dropsAllOnRejection: isPending && !rejected.contains(item.address)
        case .showsRejected: isPending || item.isRejected
        case .showsForever: !item.isRejected
        default: isPending
        }
    }
}

extension Mistake {
    fileprivate var isOfTheView: Bool {
        switch self {
        case .showsCopy, .dropsCompleted, .dropsAllOnRejection, .showsRejected, .showsForever: true
        default: false
        }
    }
}
