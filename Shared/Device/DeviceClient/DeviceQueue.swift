import Essentials
public import FoundationEssentials
import Model

/// The device's queue of mutations, which are numbered when they are queued and removed when the server has responded.
///
/// The same numbers are sent again until the response: the gateway applies each of them once. The client id identifies
/// one lifetime of the device, like an installation of the app: a new device starts at 1 with a new id. Completed
/// mutations are stored for some time, because a restored database may have lost them; then they are sent again.
public struct DeviceQueue: Equatable, Codable, Sendable {
    /// Maximum number of mutations in one request, as the gateway accepts.
    public static let batchCountMax = 500
    /// Maximum size of a request's body, as the gateway accepts: 1 MiB.
    public static let batchBytesMax = 1_048_576

    /// The id of the client that numbers the mutations.
    public private(set) var clientID: UUID
    private var nextSequence: Int64 = 1
    /// Mutations without a result, in order.
    private(set) var waiting: [QueuedMutation] = []
    /// Completed mutations, the oldest first.
    private var history: [QueuedMutation] = []
    private let historyCountMin: Int
    private var requestCount = 0
    private var requestInFlight: Int?
    /// The number of resets of realms, and that number when the server last confirmed that it has its results.
    private var resetCount = 0
    private var queriedResetCount = 0

    /// The keys of stored queues, whose names predate the properties'.
    private enum CodingKeys: String, CodingKey {
        case clientID, nextSequence, waiting, requestCount, resetCount
        case history = "kept"
        case historyCountMin = "keptCount"
        case requestInFlight = "requestUnderWay"
        case queriedResetCount = "askedResetCount"
    }

    /// Creates an empty queue.
    ///
    /// - Parameters:
    ///   - clientID: A random id that was never used before.
    ///   - historyCountMin: The minimum number of completed mutations to store; the maximum is twice as high. By
    ///     default the number of results that the gateway stores.
    public init(clientID: UUID, historyCountMin: Int = 10_000) {
        self.clientID = clientID
        self.historyCountMin = historyCountMin
    }

    /// The number of mutations without a result.
    public var count: Int { waiting.count }

    /// Whether there is anything to send: mutations without a result, or the query whether results were lost.
    public var hasToSend: Bool { !waiting.isEmpty || isInDoubt }

    /// Whether a realm was reset, and the server has not confirmed since that it still has its results.
    public var isInDoubt: Bool { !history.isEmpty && queriedResetCount < resetCount }

    /// All stored mutations in order: completed ones, then those without a result.
    public var storedMutations: [QueuedMutation] { history + waiting }

    /// Whether a mutation of the object has no result yet.
    public func contains(_ address: ObjectAddress) -> Bool { waiting.contains { $0.address == address } }

    /// Queues a mutation with the next number.
    mutating func enqueue(_ mutation: Mutation, in realm: RealmPath) -> QueuedMutation {
        let queued = QueuedMutation(sequence: nextSequence, realm: realm, mutation: mutation)
        waiting.append(queued)
        nextSequence += 1
        return queued
    }

    /// Records that a realm was reset: the database may have been restored from a backup.
    mutating func realmWasReset() { resetCount += 1 }

    /// Returns the next request: the oldest mutations without a result, which stay queued. If results may be lost, the
    /// last completed mutation comes first: its result is unchanged unless the server has lost it. It is included even
    /// if others wait, because the server may have reprocessed it without the device receiving the result.
    mutating func nextRequest(countMax: Int) -> QueueRequest? {
        let isQuery = isInDoubt
        let candidates = (isQuery ? Array(history.suffix(1)) : []) + waiting
        if candidates.isEmpty { return nil }
        var body = Array("{\"clientId\":\"\(clientID.text)\",\"mutations\":[".utf8)
        var batch: [QueuedMutation] = []
        for item in candidates.prefix(min(countMax, Self.batchCountMax)) {
            let json = item.json
            // The closing brackets of the body need two more bytes.
            guard batch.isEmpty || body.count + 1 + json.count + 2 <= Self.batchBytesMax else { break }
            if !batch.isEmpty { body.append(UInt8(ascii: ",")) }
            body.append(contentsOf: json)
            batch.append(item)
        }
        body.append(contentsOf: "]}".utf8)
        requestCount += 1
        requestInFlight = requestCount
        return QueueRequest(
            number: requestCount, resetCount: resetCount, isQuery: isQuery, mutations: batch, body: body)
    }

    /// The effect of a response on the queue.
    struct ResponseEffect {
        /// Mutations that got their result.
        var completed: [QueuedMutation] = []
        /// The number of mutations that the server lost and the queue no longer stores.
        var lostCount: Int64 = 0
        /// Whether mutations were re-queued or renumbered.
        var isRequeued = false
    }

    /// Processes a response; returns `nil` if it does not belong to the latest request.
    mutating func apply(_ response: QueueResponse, to request: QueueRequest, newClientID: UUID) -> ResponseEffect? {
        guard request.number == requestInFlight else { return nil }
        requestInFlight = nil
        queriedResetCount = max(queriedResetCount, request.resetCount)
        switch response {
        case .gap(let expected): return requeue(from: expected, newClientID: newClientID)
        case .results(let outcomes, let expected):
            // Numbers that were never allocated here: another device uses this client id and got these results.
            guard expected <= nextSequence else { return requeue(from: expected, newClientID: newClientID) }
            var effect = request.isQuery ? applyQuery(outcomes) : ResponseEffect()
            effect.completed += complete(outcomes)
            return effect
        }
    }

    /// Removes completed mutations from the queue; results of others are repetitions.
    private mutating func complete(_ outcomes: [Int64: MutationOutcome]) -> [QueuedMutation] {
        var completed: [QueuedMutation] = []
        for item in waiting {
            guard let outcome = outcomes[item.sequence] else { break }
            var item = item
            item.outcome = outcome
            completed.append(item)
        }
        waiting.removeFirst(completed.count)
        history += completed
        if history.count > 2 * historyCountMin { history.removeFirst(history.count - historyCountMin) }
        return completed
    }

    /// Processes the result of the query for lost results. If only the last one was lost, it has been reprocessed.
    private mutating func applyQuery(_ outcomes: [Int64: MutationOutcome]) -> ResponseEffect {
        guard var last = history.last, let outcome = outcomes[last.sequence], outcome != last.outcome,
            outcome != .expired
        else { return ResponseEffect() }
        last.outcome = outcome
        history[history.count - 1] = last
        return ResponseEffect(completed: [last], isRequeued: true)
    }

    /// Continues at the number that the gateway expects, if it differs from the queue's.
    ///
    /// A lower number: the gateway has lost results. The stored mutations with that number or higher are re-queued in
    /// order. Mutations that are no longer stored are lost; the rest continues with a new client id. A number that was
    /// never allocated here: another device uses the client id, and waiting mutations continue with a new one.
    private mutating func requeue(from expected: Int64, newClientID: UUID) -> ResponseEffect {
        var effect = ResponseEffect()
        if expected <= nextSequence {
            var lost = history.filter { $0.sequence >= expected }
            // The person has seen these rejections: the mutations are not shown again while they wait.
            for index in lost.indices where !lost[index].isRejected { lost[index].outcome = nil }
            history.removeAll { $0.sequence >= expected }
            waiting = lost + waiting
            effect.isRequeued = !lost.isEmpty
            guard let first = waiting.first, first.sequence > expected else { return effect }
            effect.lostCount = first.sequence - expected
        }
        effect.isRequeued = true
        clientID = newClientID
        history = []
        for index in waiting.indices { waiting[index].sequence = Int64(index) + 1 }
        nextSequence = Int64(waiting.count) + 1
        return effect
    }
}
