import Essentials
import HTTPClient
import Logging
import Model
import ServiceLifecycle
import ServiceRuntime
import Synchronization

/// Polls the health and metrics of services at the configured admin addresses.
final class ServiceWatch: Sendable {
    /// The last state of one instance.
    struct Instance: Sendable {
        let service: String
        let state: Overview.Service.State
        /// The reason that it reports, or why the request failed.
        let reason: String
        /// A gateway's live streams of devices by the environment's number; `nil` for other services.
        let devices: [String: Double]?
        let callsInFlight: Double?
    }

    private static let interval = Duration.seconds(5)
    private static let responseBytesMax = 4 << 20
    private static let reasonLengthMax = 300
    private static let devicesName = "fieldpost_live_devices"
    private static let callsName = "fieldpost_calls_in_flight"

    private let services: [ConsoleSettings.Service]
    private let client: Client
    private let latest = Mutex<[Instance]>([])

    init(_ services: [ConsoleSettings.Service], client: Client) { (self.services, self.client) = (services, client) }

    var instances: [Instance] { latest.withLock { $0 } }
    var isConfigured: Bool { !services.isEmpty }

    /// The live streams of devices by the environment's number; `nil` if no gateway responds.
    var devices: [String: Double]? {
        let responses = instances.compactMap(\.devices)
        if responses.isEmpty { return nil }
        return responses.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }
    }

    func component(_ logger: Logger) -> Component {
        .service(
            "service-poll",
            Repeating("service-poll", every: Self.interval, health: nil, logger: logger) { await self.poll() })
    }

    /// Polls all instances concurrently.
    func poll() async {
        let results = await withTaskGroup(of: (Int, Instance).self) { group in
            for (index, service) in services.enumerated() {
                group.addTask { (index, await self.poll(service)) }
            }
            var results: [(Int, Instance)] = []
            for await result in group { results.append(result) }
            return results
        }
        latest.withLock { $0 = results.sorted { $0.0 < $1.0 }.map(\.1) }
    }

    private func poll(_ service: ConsoleSettings.Service) async -> Instance {
        do {
            let health = try await get(service.url + "/health/ready")
            let samples = ServiceFiguresRule.samples(
                try await get(service.url + "/metrics").body, of: [Self.devicesName, Self.callsName])
            let isGateway = service.name == Services.realmGateway.name
            let isReady = health.status == 200
            let reason = String(decoding: health.body.prefix(Self.reasonLengthMax), as: UTF8.self)
            return Instance(
                service: service.name, state: isReady ? .ready : .impaired, reason: isReady ? "" : reason,
                devices: isGateway ? ServiceFiguresRule.sums(samples, of: Self.devicesName, by: "environment") : nil,
                callsInFlight: ServiceFiguresRule.sum(samples, of: Self.callsName))
        } catch {
            return Instance(
                service: service.name, state: .unavailable, reason: "unreachable", devices: nil, callsInFlight: nil)
        }
    }

    private func get(_ url: String) async throws -> HTTPClient.Response {
        try await client.send(
            HTTPClient.Request(
                url, connectMax: .seconds(1), totalMax: .seconds(3), responseBytesMax: Self.responseBytesMax))
    }
}
