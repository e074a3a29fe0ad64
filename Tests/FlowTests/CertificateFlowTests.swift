import DeviceClient
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Synchronization
import TestSupport
import Testing

extension FlowTests {
    /// The certificate of a gateway's process is renewed as on Kubernetes while devices have live streams.
    @Test(.timeLimit(.minutes(20))) func certificateRenewalsEndNoLiveStream() async throws {
        let authority = try TestAuthority()
        let folder = authority.folder + "/secret"
        try authority.publish(days: 100, in: folder)
        var options = LocalCluster.Options.quick
        (options.services, options.emulators) = ([.gateway], [.identity])
        options.variables[.gateway] = [
            "FIELDPOST_TLS_CERTIFICATE": folder + "/tls.crt", "FIELDPOST_TLS_KEY": folder + "/tls.key",
        ]
        try await withCluster("certificates", options) { cluster in
            let devices = try await SecureDevices(cluster, authority)
            let (streamCount, renewalCount) = (200, 20)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<streamCount {
                    group.addTask { try await devices.follow(untilChanges: renewalCount) }
                }
                try await devices.wait("the streams are open") { $0.openCount == streamCount }
                for renewal in 1...renewalCount {
                    let previous = try await devices.certificateEnd()
                    try authority.publish(days: 100 + renewal, in: folder)
                    try await eventually("new connections get the new certificate") {
                        try await devices.certificateEnd() > previous ? nil : "\(previous)"
                    }
                    let id = try await devices.change()
                    try await devices.wait("all streams have the change") { $0.received[id] == streamCount }
                }
                try await group.waitForAll()
            }
            let end = Double(try await devices.certificateEnd().secondsSinceEpoch)
            let page = try await cluster.text(of: Request(cluster.adminURL(.gateway) + "/metrics"))
            let metric = /fieldpost_tls_certificate_expiry_timestamp_seconds\{server="device-api"\} ([0-9.e+]+)/
            #expect(try Double(#require(page.firstMatch(of: metric)).1) == end, "\(page)")
        }
    }
}

extension LocalCluster {
    /// Sends a request, and returns the response's text.
    fileprivate func text(of request: Request) async throws -> String {
        let client = Client()
        defer { client.shutDown() }
        return String(decoding: try await client.send(request).body, as: UTF8.self)
    }
}

/// Devices of one person at a gateway with TLS.
private final class SecureDevices: Sendable {
    struct Progress {
        /// The ids of changed objects.
        var changes: [String] = []
        var openCount = 0
        /// Number of streams that received each change.
        var received: [String: Int] = [:]
        var endedCount = 0
    }

    private let url: String
    private let authority: TestAuthority
    private let headers: [(String, String)]
    private let client: Client
    private let progress = Mutex(Progress())

    init(_ cluster: LocalCluster, _ authority: TestAuthority) async throws {
        try await cluster.runCommand([
            "environment", "add", "secure", "--domain", "example.com", "--issuer", cluster.identityURL,
            "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "none",
            "--client-id", LocalCluster.clientID, "--client-secret-from", LocalCluster.clientSecretVariable,
        ])
        let text = try await cluster.text(
            of:
                Request(
                    "POST", cluster.identityURL + "/sandbox/token", headers: [("Content-Type", "application/json")],
                    body: Array(#"{"email":"ana@example.com"}"#.utf8)))
        let json = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        let token = try #require(json?["access_token"] as? String)
        (url, self.authority) = (cluster.gatewayURL.replacing("http://", with: "https://"), authority)
        headers = [("Authorization", "Bearer \(token)"), ("Content-Type", "application/json")]
        client = Client(configuration: Self.configuration(authority))
        try await eventually("the gateway has the environment") {
            let status = try await client.send(Request("GET", url + "/v1/realms", headers: headers)).status
            return status == 200 ? nil : "\(status)"
        }
    }

    deinit { client.shutDown() }

    private static func configuration(_ authority: TestAuthority) -> Client.Configuration {
        var configuration = Client.Configuration()
        configuration.caFile = authority.file
        configuration.readsCertificates = true
        configuration.connectionsPerHostMax = 500
        return configuration
    }

    /// Sends a request on a new connection.
    private func sendOnNewConnection(_ request: Request) async throws -> Response {
        let client = Client(configuration: Self.configuration(authority))
        defer { client.shutDown() }
        let response = try await client.send(request)
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        return response
    }

    func certificateEnd() async throws -> Timestamp {
        let response = try await sendOnNewConnection(Request("GET", url + "/v1/realms", headers: headers))
        return try #require(response.certificateEnd)
    }

    /// Follows a live stream until it has received the given number of changes.
    ///
    /// - Throws: If the stream ends before.
    func follow(untilChanges count: Int) async throws {
        var device = DeviceState(clientID: UUID())
        let body = device.syncRequest(isLive: true)
        do {
            let stream = try await client.stream(Request("POST", url + "/v1/sync", headers: headers, body: body))
            try #require(stream.status == 200)
            var (received, isOpen): (Set<String>, Bool) = ([], false)
            for try await line in stream.body.lines(bytesMax: 1 << 20) {
                let text = String(decoding: line, as: UTF8.self)
                progress.withLock { progress in
                    if !isOpen, text.contains(#"{"checkpoint""#) {
                        (isOpen, progress.openCount) = (true, progress.openCount + 1)
                    }
                    for id in progress.changes where text.contains(id) && received.insert(id).inserted {
                        progress.received[id, default: 0] += 1
                    }
                }
                if received.count == count { return }
            }
            throw ClusterFailure("the stream ended after \(received.count) changes")
        } catch {
            progress.withLock { $0.endedCount += 1 }
            throw error
        }
    }

    /// Writes an entry on a new connection, and returns its id.
    func change() async throws -> String {
        let id = UUID()
        progress.withLock { $0.changes.append(id.text) }
        var device = DeviceState(clientID: UUID())
        let fields = Array(#"{"text":"A change"}"#.utf8)
        let realm = try RealmPath.user("ana@example.com")
        _ = try device.enqueue(Mutation(operation: .put, kind: .timeEntry, id: id, fields: fields), in: realm)
        let next = device.nextRequest()
        let body = try #require(next).body
        _ = try await sendOnNewConnection(Request("POST", url + "/v1/mutations", headers: headers, body: body))
        return id.text
    }

    /// Waits for a condition while no stream ends.
    func wait(_ what: String, _ condition: (Progress) -> Bool) async throws {
        try await eventually(what) {
            let now = progress.withLock { $0 }
            try #require(now.endedCount == 0, "\(now.endedCount) streams ended")
            return condition(now) ? nil : "\(now)"
        }
    }
}
