import Foundation
import HTTPClient
import HTTPServer
import LocalCluster
import Model
import ObjectStore
import Postgres
import ProjectDocuments
import TestSupport
import Testing
import Yams

@testable import RealmGateway

/// The gateway's connections: keep-alive, streaming, limits, and a proxy.
@Suite(.ownThreads) struct GatewayConnectionTests {
    @Test func eachRequestOnAKeepAliveConnectionGetsOneResponse() async throws {
        let document = try ProjectDocument("deploy/openapi.yaml")
        let paths = try #require(document.root["paths"]).members.map(\.name).filter { $0.hasPrefix("/v1/") }
        try #require(paths.count >= 6)
        let targets = paths.map { $0.replacing("{id}", with: UUID().uuidString.lowercased()) }
        try await withGateway { fixture in
            let token = try await fixture.keys.token("ana@example.com")
            let fields = ["Authorization: Bearer \(token)", "Content-Type: application/json"]
            let connections = KeptConnections(port: fixture.ports[0])
            #expect(await connections.faults(of: targets, fields: [fields, []]) == [])
            for isChunked in [false, true] {
                let stream = KeptConnections.Request(
                    "POST", "/v1/sync", fields: fields, body: #"{"live":false}"#, isChunked: isChunked)
                #expect(await connections.faults(of: stream) == [])
            }
        }
    }

    @Test func slowConnectionsAreClosed() async throws {
        let http = HTTPLimits(idleMax: .seconds(300), headMax: .seconds(2), bodyMax: .seconds(2))
        try await withGateway(http: http) { fixture in
            let token = try await fixture.keys.token("ana@example.com")
            let fields = ["Authorization: Bearer \(token)", "Content-Type: application/json"]
            let clients = SlowClients(port: fixture.ports[0])
            for target in ["/v1/mutations", "/v1/sync"] {
                // Without a token, the response comes before the body's end.
                for fields in [fields, []] {
                    let faults = try await clients.survivors(posting: target, fields: fields)
                    #expect(faults == [], "\(target), \(fields.count) fields")
                }
            }
        }
    }

    @Test func connectionsPerNetworkAreLimited() async throws {
        let http = HTTPLimits(networkConnectionCountMax: 20, idleMax: .seconds(300))
        try await withGateway(http: http) { fixture in
            let faults = try await SlowClients(port: fixture.ports[0]).limitFaults(20, path: "/v1/realms")
            #expect(faults == [])
        }
    }

    /// A proxy that buffers responses forwards each line of a live stream at once.
    @Test func liveLinesPassABufferingProxyAtOnce() async throws {
        try await withGateway { fixture in
            let path = try RealmPath.user("ana@example.com")
            let realm = try fixture.realm(path)
            let token = try await fixture.keys.token("ana@example.com")
            try await withNginx(before: fixture.ports[0]) { port in
                let response = try await fixture.client.stream(
                    Request(
                        "POST", "http://127.0.0.1:\(port)/v1/sync",
                        headers: [("Authorization", "Bearer \(token)"), ("Content-Type", "application/json")],
                        body: Array(#"{"live":true}"#.utf8)), idleMax: patienceMax)
                #expect(response.status == 200)
                #expect(response.headers["Cache-Control"] == "no-store, no-transform")
                let id = UUID()
                var isWritten = false
                for try await line in response.body.lines(bytesMax: 1 << 20) {
                    let text = String(decoding: line, as: UTF8.self)
                    if text.contains(id.uuidString.lowercased()) { return }
                    guard !isWritten, text.contains("\"checkpoint\"") else { continue }
                    isWritten = true
                    try fixture.write { batch in
                        batch.put(
                            ObjectKey(realm: realm, kind: .timeEntry, id: id), try CanonicalJSON("{}"), decision: 0)
                    }
                }
                Issue.record("the stream ended before the change arrived")
            }
        }
    }
}
