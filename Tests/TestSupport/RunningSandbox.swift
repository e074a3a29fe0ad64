internal import FoundationEssentials
package import HTTP
internal import Testing

/// A stand-in that a test runs, and its own interface.
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

    /// Waits until `condition` holds.
    package func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
        let deadline = ContinuousClock.now + patienceMax
        while try await !condition() {
            guard .now < deadline else { return false }
            try await Task.sleep(for: .milliseconds(5))
        }
        return true
    }
}
