import DeviceClient
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model

/// A device of the first person that sends new objects at a steady rate, one request at a time: each request has the
/// objects that were due during the preceding one.
struct BenchSender {
    private let gateway: GatewayClient
    private let token: String
    private let realm: RealmPath
    private let kind: Kind
    private var device = DeviceState(clientID: UUID())
    private var number = 0

    /// - Parameter realm: `nil`: the person's own.
    init(_ installation: BenchInstallation, _ kind: Kind = .timeEntry, in realm: RealmPath? = nil) throws {
        gateway = installation.gateway
        token = installation.tokens[0]
        self.realm = try realm ?? RealmPath.user(installation.people[0].email)
        self.kind = kind
    }

    mutating func send(
        _ count: Int, perSecond rate: Int, _ clocks: [LatencyClock], responses: LatencyClock? = nil,
        fields: (Int) throws -> [UInt8]
    ) async throws {
        let interval = Duration.seconds(1) / rate
        let start = ContinuousClock.now
        // A late timer does not count.
        var awake = start
        var queued = 0
        while queued < count || device.queue.count > 0 {
            while queued < count, case let due = start + interval * queued, due <= .now {
                number += 1
                let mutation = Mutation(operation: .put, kind: kind, id: UUID(), fields: try fields(number))
                for clock in clocks { clock.start(mutation.id, at: max(due, awake)) }
                responses?.start(mutation.id, at: max(due, awake))
                _ = try device.enqueue(mutation, in: realm)
                queued += 1
            }
            if device.queue.count > 0 {
                try await sendBatch(responses)
            } else {
                try await Task.sleep(until: start + interval * queued, tolerance: .zero, clock: .continuous)
                awake = .now
            }
        }
    }

    private mutating func sendBatch(_ responses: LatencyClock?) async throws {
        guard let request = device.nextRequest(countMax: Device.batchCountMax) else { return }
        let response = try await gateway.send(request.body, token: token)
        guard let answer = try QueueResponse.read(status: response.status, body: response.body) else {
            throw GatewayClient.UnexpectedResponse(response)
        }
        let now = ContinuousClock.now
        for answer in device.take(answer, to: request, newClientID: UUID()).answers {
            responses?.stop(answer.mutation.id, at: now)
            if case .rejected(let code, let detail) = answer.outcome {
                throw ClusterFailure("the gateway rejected a mutation: \(code) \(detail)")
            }
        }
    }
}
