import Essentials
public import FoundationEssentials
import Model

/// The device's outgoing queue: mutations are numbered when they are queued and leave it when they are answered.
///
/// The same numbers are sent again until an answer comes: the gateway applies each of them once. The client id belongs
/// to one life of the device, like an installation of the app: a new device begins at 1 under a new id. What was
/// answered is kept for a while: a database that was restored may have lost it, and then it is sent again.
public struct DeviceQueue: Equatable, Codable, Sendable {
    /// The most mutations in one request, as the gateway takes them.
    public static let batchCountMax = 500
    /// The largest body of a request, as the gateway takes it: 1 MiB.
    public static let batchBytesMax = 1_048_576

    /// Who numbers the mutations.
    public private(set) var clientID: UUID
    private var nextSequence: Int64 = 1
    /// Without an answer, in their order.
    private(set) var waiting: [QueuedMutation] = []
    /// Answered, the oldest first.
    private var kept: [QueuedMutation] = []
    private let keptCount: Int
    private var requestCount = 0
    private var requestUnderWay: Int?
    /// How often a realm was given anew, and how often the server was asked since whether it has lost its answers.
    private var resetCount = 0
    private var askedResetCount = 0

    /// An empty queue.
    ///
    /// - Parameters:
    ///   - clientID: Random, and never used before.
    ///   - keptCount: So many answered mutations are kept at least, and at most twice as many. By default as many as
    ///     the gateway keeps answers.
    public init(clientID: UUID, keptCount: Int = 10_000) {
        self.clientID = clientID
        self.keptCount = keptCount
    }

    /// Mutations without an answer.
    public var count: Int { waiting.count }

    /// Whether there is anything to send: mutations without an answer, or the question whether answers were lost.
    public var hasToSend: Bool { !waiting.isEmpty || isInDoubt }

    /// Whether a realm was given anew, and the server has not said since whether it still has what it answered.
    public var isInDoubt: Bool { !kept.isEmpty && askedResetCount < resetCount }

    /// All that is remembered, in the order of the numbers: what was answered, then what waits.
    public var remembered: [QueuedMutation] { kept + waiting }

    /// Whether a mutation of the object has no answer yet.
    public func holds(_ address: ObjectAddress) -> Bool { waiting.contains { $0.address == address } }

    /// Queues a mutation under the next number.
    mutating func enqueue(_ mutation: Mutation, in realm: RealmPath) -> QueuedMutation {
        let queued = QueuedMutation(sequence: nextSequence, realm: realm, mutation: mutation)
        waiting.append(queued)
        nextSequence += 1
        return queued
    }

    /// A realm is given anew: the database may be another one's backup.
    mutating func realmWasReset() { resetCount += 1 }

    /// What to send next: the oldest without an answer, which stay queued. When answers may be lost, the last answered
    /// one comes first: its answer is the same, unless the server has lost it. It comes also when others wait: the
    /// server may have decided it anew already, and nobody heard the answer.
    mutating func nextRequest(countMax: Int) -> QueueRequest? {
        let isQuestion = isInDoubt
        let candidates = (isQuestion ? Array(kept.suffix(1)) : []) + waiting
        if candidates.isEmpty { return nil }
        var body = Array("{\"clientId\":\"\(clientID.text)\",\"mutations\":[".utf8)
        var batch: [QueuedMutation] = []
        for item in candidates.prefix(min(countMax, Self.batchCountMax)) {
            let json = item.json
            // Two more bytes end the body.
            guard batch.isEmpty || body.count + 1 + json.count + 2 <= Self.batchBytesMax else { break }
            if !batch.isEmpty { body.append(UInt8(ascii: ",")) }
            body.append(contentsOf: json)
            batch.append(item)
        }
        body.append(contentsOf: "]}".utf8)
        requestCount += 1
        requestUnderWay = requestCount
        return QueueRequest(
            number: requestCount, resetCount: resetCount, isQuestion: isQuestion, mutations: batch, body: body)
    }

    /// What an answer amounts to.
    struct Taken {
        /// What was told of mutations that had no answer.
        var answered: [QueuedMutation] = []
        /// Mutations that the server lost and the queue keeps no longer.
        var lostCount: Int64 = 0
        /// Whether something else is to be sent than before.
        var hasGoneBack = false
    }

    /// Takes in an answer; `nil` when it is to another request than the last.
    mutating func take(_ answer: QueueAnswer, to request: QueueRequest, newClientID: UUID) -> Taken? {
        guard request.number == requestUnderWay else { return nil }
        requestUnderWay = nil
        askedResetCount = max(askedResetCount, request.resetCount)
        switch answer {
        case .gap(let expected): return goBack(to: expected, newClientID: newClientID)
        case .results(let outcomes, let expected):
            // Numbers that were never given here: another device uses this client id, and got these answers.
            guard expected <= nextSequence else { return goBack(to: expected, newClientID: newClientID) }
            var taken = request.isQuestion ? takeAgain(outcomes) : Taken()
            taken.answered += take(outcomes)
            return taken
        }
    }

    /// Takes the answered mutations off the queue; answers to others are repeats and say nothing new.
    private mutating func take(_ outcomes: [Int64: MutationOutcome]) -> [QueuedMutation] {
        var answered: [QueuedMutation] = []
        for item in waiting {
            guard let outcome = outcomes[item.sequence] else { break }
            var item = item
            item.outcome = outcome
            answered.append(item)
        }
        waiting.removeFirst(answered.count)
        kept += answered
        if kept.count > 2 * keptCount { kept.removeFirst(kept.count - keptCount) }
        return answered
    }

    /// The answer to the question whether answers were lost. Where only the last one was, it has been decided anew.
    private mutating func takeAgain(_ outcomes: [Int64: MutationOutcome]) -> Taken {
        guard var last = kept.last, let outcome = outcomes[last.sequence], outcome != last.outcome,
            outcome != .forgotten
        else { return Taken() }
        last.outcome = outcome
        kept[kept.count - 1] = last
        return Taken(answered: [last], hasGoneBack: true)
    }

    /// The gateway goes on from another number than the queue.
    ///
    /// From an older one: it has lost what it had answered. What is kept from there on is queued again, in its old
    /// order. What is not kept any more is lost; the rest goes on under a new client id. From one that was never given
    /// here: the client id is somebody else's too, and what waits goes on under a new one.
    private mutating func goBack(to expected: Int64, newClientID: UUID) -> Taken {
        var taken = Taken()
        if expected <= nextSequence {
            var lost = kept.filter { $0.sequence >= expected }
            // A person was told that these were rejected: they are not shown again while they wait.
            for index in lost.indices where !lost[index].isRejected { lost[index].outcome = nil }
            kept.removeAll { $0.sequence >= expected }
            waiting = lost + waiting
            taken.hasGoneBack = !lost.isEmpty
            guard let first = waiting.first, first.sequence > expected else { return taken }
            taken.lostCount = first.sequence - expected
        }
        taken.hasGoneBack = true
        clientID = newClientID
        kept = []
        for index in waiting.indices { waiting[index].sequence = Int64(index) + 1 }
        nextSequence = Int64(waiting.count) + 1
        return taken
    }
}
