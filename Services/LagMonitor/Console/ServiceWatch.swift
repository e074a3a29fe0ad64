import Essentials
import HTTPClient
import Logging
import ServiceLifecycle
import ServiceRuntime
import Synchronization

/// Asks services how they are, at the addresses that the settings name.
final class ServiceWatch: Sendable {
    /// How one instance answered last.
    struct Instance: Encodable, Sendable, Equatable {
        enum State: String, Encodable, Sendable {
            case ready
            /// It says itself that it is not.
            case impaired
            /// It does not answer.
            case away
        }

        let service: String
        let state: State
        /// What it says itself, or why it does not answer.
        let reason: String
        let devices: Double?
        let callsInFlight: Double?
        let memoryBytes: Double?
        let startedAt: Double?
    }

    private static let interval = Duration.seconds(5)
    private static let answerBytesMax = 4 << 20
    private static let reasonLengthMax = 300
    static let names: Set<String> = [
        "fieldpost_live_devices", "fieldpost_calls_in_flight", "process_resident_memory_bytes",
        "process_start_time_seconds",
    ]

    private let services: [ConsoleSettings.Service]
    private let client: Client
    private let found = Mutex<[Instance]>([])

    init(_ services: [ConsoleSettings.Service], client: Client) { (self.services, self.client) = (services, client) }

    var instances: [Instance] { found.withLock { $0 } }
    var isConfigured: Bool { !services.isEmpty }

    func component(_ logger: Logger) -> Component {
        .service(
            "watch of services",
            Repeating("watch of services", every: Self.interval, health: nil, logger: logger) { await self.look() })
    }

    /// Asks all of them at a time.
    func look() async {
        let answers = await withTaskGroup(of: (Int, Instance).self) { group in
            for (index, service) in services.enumerated() {
                group.addTask { (index, await self.ask(service)) }
            }
            var answers: [(Int, Instance)] = []
            for await answer in group { answers.append(answer) }
            return answers
        }
        found.withLock { $0 = answers.sorted { $0.0 < $1.0 }.map(\.1) }
    }

    private func ask(_ service: ConsoleSettings.Service) async -> Instance {
        do {
            let health = try await get(service.url + "/health/ready")
            let figures = ServiceFiguresRule.sums(try await get(service.url + "/metrics").body, of: Self.names)
            let isReady = health.status == 200
            let said = String(decoding: health.body.prefix(Self.reasonLengthMax), as: UTF8.self)
            return Instance(
                service: service.name, state: isReady ? .ready : .impaired, reason: isReady ? "" : said,
                devices: figures["fieldpost_live_devices"], callsInFlight: figures["fieldpost_calls_in_flight"],
                memoryBytes: figures["process_resident_memory_bytes"],
                startedAt: figures["process_start_time_seconds"])
        } catch {
            return Instance(
                service: service.name, state: .away, reason: "does not answer", devices: nil, callsInFlight: nil,
                memoryBytes: nil, startedAt: nil)
        }
    }

    private func get(_ url: String) async throws -> HTTPClient.Response {
        try await client.send(
            HTTPClient.Request(
                url, connectMax: .seconds(1), totalMax: .seconds(3), answerBytesMax: Self.answerBytesMax))
    }
}
