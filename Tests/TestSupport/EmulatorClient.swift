package import BackendContract
internal import FoundationEssentials
package import HTTPClient
internal import Testing

/// An emulator that a test runs, and its control routes.
package protocol EmulatorClient: Sendable {
    var url: String { get }
    var client: Client { get }
}

/// An emulator that a test runs, with its state.
package struct RunningEmulator<System: Sendable>: EmulatorClient {
    package let client = Client()
    package let url: String
    package let system: System
}

/// Runs an emulator while `body` runs.
///
/// - Parameter run: Serves until its task is cancelled; reports the port when it accepts requests.
package func withEmulator<System: Sendable>(
    _ system: System,
    _ run: @escaping @Sendable (_ onRunning: @escaping @Sendable (Int) async -> Void) async throws -> Void,
    _ body: (RunningEmulator<System>) async throws -> Void
) async throws {
    try await withService(run) { port in
        let emulator = RunningEmulator(url: "http://127.0.0.1:\(port)", system: system)
        defer { emulator.client.shutDown() }
        try await body(emulator)
    }
}

/// An emulator in a process of its own.
package struct RemoteEmulator: EmulatorClient {
    package let url: String
    package let client: Client

    package init(url: String, client: Client) { (self.url, self.client) = (url, client) }

    /// Lends the emulator at this address.
    package static func with<Value>(
        _ url: String, _ body: (RemoteEmulator) async throws -> Value
    ) async throws -> Value {
        let client = Client()
        defer { client.shutDown() }
        return try await body(RemoteEmulator(url: url, client: client))
    }
}

extension EmulatorClient {
    @discardableResult
    package func post(_ path: String, _ json: String) async throws -> Response {
        let response = try await client.send(Request("POST", url + path, body: Array(json.utf8)))
        try #require(response.status == 200, "\(path): \(String(decoding: response.body, as: UTF8.self))")
        return response
    }

    package func switches(_ json: String) async throws { try await post("/sandbox/switches", json) }

    /// Injects the faults that a contract requires.
    package func behave(_ behaviour: BackendBehaviour) async throws {
        let faults: [String: Double] =
            switch behaviour {
            case .normal: [:]
            case .failing: ["rate503": 1]
            case .failingAfterWrite: ["rate500AfterWrite": 1]
            case .losingResponses: ["rateLostAfterWrite": 1]
            case .overloaded(let retryAfter):
                ["rate429": 1, "retryAfterSeconds": Double(retryAfter.components.seconds)]
            case .stuck: ["rateSlow": 1, "slowMs": 120_000]
            }
        let all = ["rate503", "rate500AfterWrite", "rateLostAfterWrite", "rate429", "rateSlow"]
        let switches = Dictionary(uniqueKeysWithValues: all.map { ($0, 0) }).merging(faults) { $1 }
        let fields = switches.map { "\"\($0)\": \(Int($1))" }.joined(separator: ", ")
        try await self.switches("{\(fields)}")
    }

    package func stats() async throws -> [String: Int] { try await read("/sandbox/stats", as: [String: Int].self) }

    package func recorded<Record: Decodable>(as type: Record.Type) async throws -> [Record] {
        try await lines("/sandbox/recorded", as: type)
    }

    package func read<Body: Decodable>(_ path: String, as type: Body.Type) async throws -> Body {
        let response = try await client.send(Request(url + path))
        return try JSONDecoder().decode(type, from: Data(response.body))
    }

    /// Reads a route that returns one line of JSON per row.
    package func lines<Row: Decodable>(_ path: String, as type: Row.Type) async throws -> [Row] {
        let response = try await client.send(Request(url + path))
        return try response.body.split(separator: UInt8(ascii: "\n")).map {
            try JSONDecoder().decode(type, from: Data($0))
        }
    }

    /// Waits until `condition` is true.
    package func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
        let deadline = ContinuousClock.now + patienceMax
        while try await !condition() {
            guard .now < deadline else { return false }
            try await Task.sleep(for: .milliseconds(5))
        }
        return true
    }
}
