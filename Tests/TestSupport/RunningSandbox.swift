package import BackendContract
internal import FoundationEssentials
package import HTTPClient
internal import Testing

/// A sandbox that a test runs, and its control interface.
package protocol RunningSandbox: Sendable {
    var url: String { get }
    var client: Client { get }
}

extension RunningSandbox {
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

    package func stats() async throws -> [String: Int] {
        let response = try await client.send(Request(url + "/sandbox/stats"))
        return try JSONDecoder().decode([String: Int].self, from: Data(response.body))
    }

    package func recorded<Record: Decodable>(as _: Record.Type) async throws -> [Record] {
        let response = try await client.send(Request(url + "/sandbox/recorded"))
        return try response.body.split(separator: UInt8(ascii: "\n")).map {
            try JSONDecoder().decode(Record.self, from: Data($0))
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
