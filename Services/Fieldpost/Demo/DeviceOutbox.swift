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
/// to one life of the device, like an installation of the app: a new device begins at 1 under a new id.
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

    /// The gateway's numbers and the device's cannot be brought together.
    struct Problem: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    let clientID: UUID
    /// The most mutations in one request.
    static let batchCountMax = 100
    private var nextSequence: Int64 = 1
    private var waiting: [Numbered] = []

    init(clientID: UUID) { self.clientID = clientID }

    var count: Int { waiting.count }

    mutating func enqueue(_ mutation: DeviceMutation) {
        waiting.append(Numbered(sequence: nextSequence, mutation: mutation))
        nextSequence += 1
    }

    /// What to send next: the oldest without an answer. It stays queued.
    func nextBatch() -> [Numbered] { Array(waiting.prefix(Self.batchCountMax)) }

    /// Takes the answered mutations off the queue; answers to others are repeats and say nothing new.
    mutating func answered(_ outcomes: [Int64: Outcome]) -> [Answer] {
        var answers: [Answer] = []
        while let first = waiting.first, let outcome = outcomes[first.sequence] {
            answers.append(Answer(mutation: first.mutation, outcome: outcome))
            waiting.removeFirst()
        }
        return answers
    }

    /// The gateway misses a number before those that were sent.
    ///
    /// - Throws: ``Problem`` when that number is not queued any more: it was answered, and the server has lost it.
    func check(expected: Int64) throws(Problem) {
        let oldest = waiting.first?.sequence ?? nextSequence
        guard expected >= oldest else {
            throw Problem(description: "the gateway expects mutation \(expected); \(oldest - 1) were accepted before")
        }
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
