import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import PowerSyncModel
import TestSupport
import Testing

/// A device that follows a gateway with the PowerSync protocol.
actor BucketDevice {
    let fixture: GatewayFixture
    let gateway: Int
    let token: String
    nonisolated let clientID = UUID()
    private(set) var model = BucketModel()
    private(set) var lines: [String] = []
    /// The rules that the gateway has broken.
    private(set) var broken: [String] = []

    init(_ fixture: GatewayFixture, _ email: String, gateway: Int = 0, expiresIn: Int = 600) async throws {
        self.fixture = fixture
        self.gateway = gateway
        token = try await fixture.keys.token(email, expiresIn: expiresIn)
    }

    nonisolated func request(_ method: String, _ path: String, _ body: [String: Any]? = nil) throws -> Request {
        let text = try body.map { String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self) }
        return request(method, path, text: text)
    }

    nonisolated func request(_ method: String, _ path: String, text: String?) -> Request {
        Request(
            method, fixture.url(path, gateway: gateway),
            headers: [("Authorization", "Token \(token)"), ("Content-Type", "application/json")],
            body: text.map { Array($0.utf8) }, totalMax: patienceMax)
    }

    /// Records a number that the client chose; returns the server's.
    func requestCheckpoint(_ number: String) async throws -> String? {
        let response = try await fixture.client.send(
            try request(
                "POST", "/sync/checkpoint-request",
                ["client_id": clientID.uuidString.lowercased(), "checkpoint_request_id": number]))
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        let json = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: [String: String]]
        return json?["data"]?["checkpoint_request_id"]
    }

    /// Follows the stream until the condition holds after a line, or the server ends it.
    ///
    /// - Parameter buckets: The buckets of the request, instead of the device's.
    func follow(
        subscriptions: [String] = [], includesDefaults: Bool = true, buckets: [[String: String]]? = nil,
        until isDone: @Sendable (BucketModel, String) -> Bool
    ) async throws {
        let streams: [String: Any] = [
            "include_defaults": includesDefaults,
            "subscriptions": subscriptions.map { path -> [String: Any] in
                ["stream": "realm", "parameters": ["path": path], "override_priority": NSNull()]
            },
        ]
        let held = model.begin()
        let body: [String: Any] = [
            "buckets": buckets ?? held, "include_checksum": true, "raw_data": true, "binary_data": true,
            "client_id": clientID.uuidString.lowercased(), "parameters": NSNull(), "streams": streams, "later": 1,
        ]
        let response = try await fixture.client.stream(try request("POST", "/sync/stream", body))
        try #require(response.status == 200)
        #expect(response.headers["Content-Type"] == "application/x-ndjson")
        var rules = BucketRules()
        for try await line in response.body.lines(bytesMax: 1 << 20) {
            lines.append(String(decoding: line, as: UTF8.self))
            broken += rules.broken(by: line)
            try model.apply(line)
            if isDone(model, lines[lines.count - 1]) { return }
        }
    }

    /// Follows the stream up to its next consistent state.
    func sync(
        subscriptions: [String] = [], includesDefaults: Bool = true, buckets: [[String: String]]? = nil
    ) async throws {
        try await follow(
            subscriptions: subscriptions, includesDefaults: includesDefaults, buckets: buckets
        ) { _, line in
            line.hasPrefix("{\"checkpoint_complete\"")
        }
    }

    /// Returns the displayed rows of a realm, as ``GatewayFixture/stored(_:)``.
    func shown(_ realm: String) throws -> [String: String] {
        var shown: [String: String] = [:]
        for (row, data) in model.rows where row.id.hasSuffix(realm) && row.id.utf8.count == 36 + realm.utf8.count {
            let value = try JSONSerialization.jsonObject(with: Data(data.utf8))
            shown["\(row.type)/\(row.id.prefix(36))"] = try StreamedObject.text(value)
        }
        return shown
    }

    /// Records a local write, as an app does before its upload.
    func write() { model.write() }

    /// Completes the uploads, and waits for their number.
    ///
    /// - Parameter chosen: The number of a client that chooses it; `nil`: of the server.
    func uploaded(as chosen: String? = nil) async throws -> Int64 {
        let answer =
            if let chosen { try await requestCheckpoint(chosen) } else { try await writeCheckpoint() }
        let number = try #require(answer.flatMap { Int64($0) })
        model.waitingCount = 0
        model.awaited = number
        // The stream may have had the number before this response.
        model.displayIfPossible()
        return number
    }

    private func writeCheckpoint() async throws -> String? {
        let response = try await fixture.client.send(
            try request("GET", "/write-checkpoint2.json?client_id=\(clientID.uuidString.lowercased())"))
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        let json = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: [String: String]]
        return json?["data"]?["write_checkpoint"]
    }

    /// Waits for a condition on the device.
    func wait(_ what: String, _ condition: @Sendable (isolated BucketDevice) -> Bool) async throws {
        let deadline = ContinuousClock.now + patienceMax
        while !condition(self) {
            guard ContinuousClock.now < deadline else {
                Issue.record("timeout: \(what)")
                throw CancellationError()
            }
            try await Task.sleep(for: .milliseconds(2))
        }
    }
}
