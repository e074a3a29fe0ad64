import Essentials
import FoundationEssentials
import Model

/// A change the device wants, before it has a number.
struct DeviceMutation: Equatable, Sendable {
    let operation: Mutation.Operation
    let id: UUID
    /// JSON; `nil` with a delete.
    let fields: [UInt8]?
    /// Whether it asks for submission.
    var asksSubmission = false
}

/// The device's outgoing queue: mutations are numbered when they are queued and leave it when they are answered.
///
/// The same numbers are sent again until an answer comes: the gateway applies each of them once. The client id belongs
/// to one life of the device, like an installation of the app: a new device begins at 1 under a new id. What was
/// answered is kept for a while: a database that was restored may have lost it, and then it is sent again.
struct DeviceOutbox: Sendable {
    struct Numbered: Equatable, Sendable {
        let sequence: Int64
        let mutation: DeviceMutation
    }

    enum Outcome: Equatable, Sendable {
        case accepted(position: Int64)
        /// The last part of the problem's type, such as `deleted`, and its detail.
        case rejected(code: String, detail: String)
    }

    struct Answer: Equatable, Sendable {
        let mutation: DeviceMutation
        let outcome: Outcome
    }

    private(set) var clientID: UUID
    /// The most mutations in one request.
    static let batchCountMax = 100
    private var nextSequence: Int64 = 1
    private var waiting: [Numbered] = []
    /// Answered, the oldest first.
    private var kept: [Numbered] = []
    private let keptCount: Int

    /// - Parameter keptCount: So many answered mutations are kept at least, and at most twice as many. By default as
    ///   many as the gateway keeps answers.
    init(clientID: UUID, keptCount: Int = 10_000) {
        self.clientID = clientID
        self.keptCount = keptCount
    }

    var count: Int { waiting.count }

    mutating func enqueue(_ mutation: DeviceMutation) {
        waiting.append(Numbered(sequence: nextSequence, mutation: mutation))
        nextSequence += 1
    }

    /// What to send next: the oldest without an answer. It stays queued.
    func nextBatch() -> [Numbered] { Array(waiting.prefix(Self.batchCountMax)) }

    /// The last one that was answered: a gateway that has lost it misses it when it is sent again, or what is next.
    var lastAnswered: Numbered? { kept.last }

    /// Whether a mutation of the object has no answer yet.
    func holds(_ object: UUID) -> Bool { waiting.contains { $0.mutation.id == object } }

    /// Takes the answered mutations off the queue; answers to others are repeats and say nothing new.
    mutating func answered(_ outcomes: [Int64: Outcome]) -> [Answer] {
        var answers: [Answer] = []
        while let first = waiting.first, let outcome = outcomes[first.sequence] {
            answers.append(Answer(mutation: first.mutation, outcome: outcome))
            kept.append(waiting.removeFirst())
        }
        if kept.count > 2 * keptCount { kept.removeFirst(kept.count - keptCount) }
        return answers
    }

    /// The gateway misses a number before those that were sent: it has lost what it had answered.
    ///
    /// What is kept from there on is queued again, in its old order. What is not kept any more is lost; the rest goes
    /// on under a new client id.
    mutating func goBack(to expected: Int64, newClientID: @autoclosure () -> UUID) {
        let lost = kept.filter { $0.sequence >= expected }
        kept.removeAll { $0.sequence >= expected }
        waiting = lost + waiting
        guard let first = waiting.first, first.sequence > expected else { return }
        clientID = newClientID()
        kept = []
        waiting = waiting.enumerated().map { Numbered(sequence: Int64($0.offset) + 1, mutation: $0.element.mutation) }
        nextSequence = Int64(waiting.count) + 1
    }

    /// The body of a request with a batch.
    func body(of batch: [Numbered], realm: RealmPath) -> [UInt8] {
        var bytes = Array("{\"clientId\":\"\(clientID.text)\",\"mutations\":[".utf8)
        for (index, item) in batch.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            let head =
                "{\"sequence\":\(item.sequence),\"realm\":\"\(realm)\",\"op\":\"\(item.mutation.operation.rawValue)\","
                + "\"kind\":\"\(Kind.timeEntry.rawValue)\",\"id\":\"\(item.mutation.id.text)\""
            bytes.append(contentsOf: head.utf8)
            if let fields = item.mutation.fields {
                bytes.append(contentsOf: ",\"fields\":".utf8)
                bytes.append(contentsOf: fields)
            }
            bytes.append(UInt8(ascii: "}"))
        }
        bytes.append(contentsOf: "]}".utf8)
        return bytes
    }
}
