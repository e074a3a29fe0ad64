import DeviceClient
import FoundationEssentials
import HTTPClient
import Model
import Synchronization

/// When something was sent, and how long it took to arrive.
final class BenchClock: Sendable {
    private struct State {
        var sent: [UUID: ContinuousClock.Instant] = [:]
        var measured: [Duration] = []
    }

    private let state = Mutex(State())

    func sent(_ id: UUID, at time: ContinuousClock.Instant) { state.withLock { $0.sent[id] = time } }

    /// The first arrival counts; what was not sent is passed over.
    func arrived(_ id: UUID, at time: ContinuousClock.Instant) {
        state.withLock { state in
            if let sent = state.sent.removeValue(forKey: id) { state.measured.append(time - sent) }
        }
    }

    /// Hands out what was measured, and begins anew.
    func take() -> [Duration] {
        state.withLock { state in
            defer { state = State() }
            return state.measured
        }
    }

    /// Waits until everything has arrived.
    func settled(within: Duration) async throws {
        let deadline = ContinuousClock.now + within
        while case let rest = state.withLock({ $0.sent.count }), rest > 0 {
            guard ContinuousClock.now < deadline else {
                throw BenchPlace.Missing(description: "\(rest) entries have not arrived within \(within)")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}

/// A device that sends mutations at a steady pace, one request at a time: each has what came due during the one
/// before.
struct BenchSender {
    private let bench: BenchCluster
    private let token: String
    private let realm: RealmPath
    private var device = DeviceState(clientID: UUID())
    private var number = 0

    /// - Parameters:
    ///   - person: The number of the one whose device it is.
    ///   - realm: Where it writes; `nil`: in the person's own.
    init(_ bench: BenchCluster, person: Int = 0, in realm: RealmPath? = nil) throws {
        self.bench = bench
        token = bench.tokens[person]
        self.realm = try realm ?? RealmPath.user(bench.people[person].email)
    }

    /// Sends new entries.
    mutating func send(
        _ count: Int, perSecond rate: Int, _ clock: BenchClock, answered: BenchClock? = nil,
        fields: (Int) throws -> [UInt8]
    ) async throws {
        try await send(count, perSecond: rate, clock, answered: answered) { number in
            Mutation(operation: .put, kind: .timeEntry, id: UUID(), fields: try fields(number))
        }
    }

    mutating func send(
        _ count: Int, perSecond rate: Int, _ clock: BenchClock, answered: BenchClock? = nil,
        mutation: (Int) throws -> Mutation
    ) async throws {
        let interval = Duration.seconds(1) / rate
        let start = ContinuousClock.now
        /// A late timer is none of the gateway's time.
        var awake = start
        var queued = 0
        while queued < count || device.queue.count > 0 {
            while queued < count, case let due = start + interval * queued, due <= .now {
                number += 1
                let mutation = try mutation(number)
                clock.sent(mutation.id, at: max(due, awake))
                answered?.sent(mutation.id, at: max(due, awake))
                _ = try device.enqueue(mutation, in: realm)
                queued += 1
            }
            if device.queue.count > 0 {
                try await sendBatch(answered)
            } else {
                try await Task.sleep(until: start + interval * queued, tolerance: .zero, clock: .continuous)
                awake = .now
            }
        }
    }

    /// Sends new drafts as fast as they are answered, as many in a request as a device sends.
    mutating func send(_ count: Int) async throws {
        for _ in 0..<count {
            let fields = Array(#"{"text":"A change"}"#.utf8)
            _ = try device.enqueue(Mutation(operation: .put, kind: .timeEntry, id: UUID(), fields: fields), in: realm)
        }
        while device.queue.count > 0 { try await sendBatch(nil) }
    }

    private mutating func sendBatch(_ answered: BenchClock?) async throws {
        guard let request = device.nextRequest(countMax: Device.batchCountMax) else { return }
        let response = try await bench.gateway.send(request.body, token: token)
        guard let answer = try QueueAnswer.read(status: response.status, body: response.body) else {
            throw GatewayClient.Refusal(response)
        }
        let now = ContinuousClock.now
        for answer in device.take(answer, to: request, newClientID: UUID()).answers {
            answered?.arrived(answer.mutation.id, at: now)
            if case .rejected(let code, let detail) = answer.outcome {
                throw BenchPlace.Missing(description: "the gateway rejects a mutation: \(code) \(detail)")
            }
        }
    }
}
