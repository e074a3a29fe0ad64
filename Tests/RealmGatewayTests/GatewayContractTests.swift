import Access
import Essentials
import Foundation
import HTTPClient
import Model
import Postgres
import ProjectDocuments
import Synchronization
import TestSupport
import Testing
import Yams

@testable import RealmGateway

/// `deploy/openapi.yaml` names the gateway's routes, their statuses and the kinds of problems, and no others.
@Suite(.ownThreads) struct GatewayContractTests {
    /// Route, method and status, as in `/v1/sync post 200`.
    private static func documentedStatuses() throws -> Set<String> {
        var documented: Set<String> = []
        for (path, route) in try document().root["paths"]?.members ?? []
        where ["/v1/", "/sync/", "/write-"].contains(where: path.hasPrefix)
            && !["/v1/token", "/v1/logout"].contains(path)
        {
            for (method, operation) in route.members {
                for status in operation["responses"]?.names ?? [] { documented.insert("\(path) \(method) \(status)") }
            }
        }
        return documented
    }

    private static func document() throws -> ProjectDocument { try ProjectDocument("deploy/openapi.yaml") }

    private static func schemas() throws -> Node { try #require(try document().root["components"]?["schemas"]) }

    @Test func everyRouteReturnsItsDocumentedStatuses() async throws {
        let log = ContractLog(document: try Self.document().text)
        try await withGateway { fixture in
            let ana = try await GatewayDevice(fixture, "ana@example.com")
            let outsider = try await GatewayDevice(fixture, "eve@elsewhere.com")
            let unauthenticated = GatewayDevice(fixture, bearer: "x.y.z")
            let good = "{\"clientId\":\"\(UUID())\",\"mutations\":[{\"sequence\":1}]}"
            let gap = "{\"clientId\":\"\(UUID())\",\"mutations\":[{\"sequence\":7}]}"
            let cases: [(GatewayDevice, String, String, String?)] = [
                (ana, "GET", "/v1/realms", nil), (ana, "GET", "/v1/realms?after=x", nil),
                (unauthenticated, "GET", "/v1/realms", nil), (outsider, "GET", "/v1/realms", nil),
                (ana, "GET", "/v1/deliveries", nil), (unauthenticated, "GET", "/v1/deliveries", nil),
                (outsider, "GET", "/v1/deliveries", nil),
                (ana, "POST", "/v1/sync", "{}"), (ana, "POST", "/v1/sync", "["),
                (unauthenticated, "POST", "/v1/sync", "{}"),
                (outsider, "POST", "/v1/sync", "{}"), (ana, "POST", "/v1/sync", "{\"all\":true}"),
                (ana, "POST", "/v1/sync", "{\"x\":\"\(String(repeating: "x", count: 600_000))\"}"),
                (ana, "POST", "/v1/mutations", good), (ana, "POST", "/v1/mutations", "{}"),
                (unauthenticated, "POST", "/v1/mutations", good), (outsider, "POST", "/v1/mutations", good),
                (ana, "POST", "/v1/mutations", gap),
                (ana, "POST", "/v1/mutations", "{\"x\":\"\(String(repeating: "x", count: 1 << 20))\"}"),
            ]
            for (device, method, path, body) in cases {
                log.check(
                    method, path, GatewayResponse(try await fixture.client.send(device.request(method, path, body))))
            }
            for path in ["/v1/sync", "/v1/mutations"] {
                var request = ana.request("POST", path, "{}")
                request.headers = [("Authorization", "Bearer \(ana.token)"), ("Content-Type", "text/plain")]
                log.check("POST", path, GatewayResponse(try await fixture.client.send(request)))
            }
            let without = GatewayResponse(try await fixture.client.send(Request(fixture.url("/v1/realms"))))
            log.check("GET", "/v1/realms", without)
            try await Self.blobResponses(ana, unauthenticated, outsider, log)
            try await Self.outlineResponses(ana, unauthenticated, outsider, log)
            try await Self.schemaResponses(ana, unauthenticated, outsider, log)
            try await Self.credentialResponses(ana, unauthenticated, outsider, log)
            try await Self.bucketResponses(ana, unauthenticated, outsider, log)
        }
        struct Unavailable: Error {}
        try await withGateway(fetch: { _ in throw Unavailable() }) { fixture in
            try await Self.successResponses(fixture, log)
        }
        try await withGateway { fixture in
            var connection = try Connection(fixture.database)
            try connection.run(
                """
                INSERT INTO realm.move (environment_id, move_id, state, moved_to)
                SELECT id, gen_random_uuid(), 'left', 'https://new.example' FROM realm.environment
                """)
            let ana = try await GatewayDevice(fixture, "ana@example.com")
            try await eventually("the environment has moved") {
                let response = GatewayResponse(try await fixture.client.send(ana.request("GET", "/v1/realms", nil)))
                return response.status == 421 && response.problem == "environment-moved"
            }
            try await Self.successResponses(fixture, log)
        }
        try await withGateway { fixture in try await Self.successResponses(fixture, log) }
        let differences = try log.seen.withLock { $0 }.symmetricDifference(Self.documentedStatuses())
        #expect(differences == [], "\(differences.sorted())")
    }

    private static let (bucketClient, checkpointRequest) = (UUID().text, "/sync/checkpoint-request")
    private static let uploads = "{\"clientId\":\"\(bucketClient)\",\"entries\":[]}"
    private static let number = "{\"client_id\":\"\(bucketClient)\",\"checkpoint_request_id\":\"1\"}"
    private static let nextNumber = "/write-checkpoint2.json?client_id=\(bucketClient)"

    /// The routes of the PowerSync protocol.
    private static func bucketResponses(
        _ ana: GatewayDevice, _ unauthenticated: GatewayDevice, _ outsider: GatewayDevice, _ log: ContractLog
    ) async throws {
        let long = "{\"x\":\"\(String(repeating: "x", count: 1 << 20))\"}"
        for device in [unauthenticated, outsider] {
            log.check(
                "GET", nextNumber, GatewayResponse(try await ana.fixture.client.send(device.request("GET", nextNumber)))
            )
        }
        let invalid = ana.request("GET", "/write-checkpoint2.json?client_id=1")
        log.check("GET", nextNumber, GatewayResponse(try await ana.fixture.client.send(invalid)))
        for (path, body) in [("/sync/stream", "{}"), (checkpointRequest, number), ("/v1/uploads", uploads)] {
            var requests = [ana, unauthenticated, outsider].map { $0.request("POST", path, body) }
            // A stream of the first one would not end.
            if path == "/sync/stream" { requests.removeFirst() }
            requests += [ana.request("POST", path, "["), ana.request("POST", path, long)]
            var other = ana.request("POST", path, body)
            other.headers = [("Authorization", "Bearer \(ana.token)"), ("Content-Type", "text/plain")]
            for request in requests + [other] {
                log.check("POST", path, GatewayResponse(try await ana.fixture.client.send(request)))
            }
        }
    }

    /// The responses to valid requests of each route.
    private static func successResponses(_ fixture: GatewayFixture, _ log: ContractLog) async throws {
        let ana = try await GatewayDevice(fixture, "ana@example.com")
        // It ends with its token.
        let short = try await GatewayDevice(fixture, "ana@example.com", expiresIn: -40)
        for (method, path, body) in [
            ("GET", nextNumber, nil), ("POST", checkpointRequest, number), ("POST", "/v1/uploads", uploads),
            ("POST", "/sync/stream", "{}"),
        ] {
            log.check(method, path, GatewayResponse(try await fixture.client.send(short.request(method, path, body))))
        }
        let blob = "/v1/blobs/\(UUID().text)"
        let routes = [
            ("GET", "/v1/realms"), ("GET", "/v1/deliveries"), ("GET", "/v1/outline"), ("GET", "/v1/schema"),
            ("POST", "/v1/sync"),
            ("POST", "/v1/mutations"), ("PUT", blob), ("GET", blob),
            ("PUT", "/v1/credentials/compass"), ("DELETE", "/v1/credentials/compass"),
        ]
        for (method, path) in routes {
            log.check(method, path, GatewayResponse(try await fixture.client.send(ana.request(method, path, "{}"))))
        }
    }

    private static func blobResponses(
        _ ana: GatewayDevice, _ unauthenticated: GatewayDevice, _ outsider: GatewayDevice, _ log: ContractLog
    ) async throws {
        let (id, png) = (UUID(), TestImage.make())
        for bytes in [png, png, TestImage.make(.webp), [], png.dropLast(), TestImage.make(count: 1 << 20) + [0]] {
            log.check("PUT", "/v1/blobs/\(id)", try await ana.putBlob(id, bytes))
        }
        for device in [unauthenticated, outsider] {
            log.check("PUT", "/v1/blobs/\(id)", try await device.putBlob(id))
            log.check("GET", "/v1/blobs/\(id)", GatewayResponse(try await device.getBlob(id)))
        }
        let response = try await ana.getBlob(id)
        log.check("GET", "/v1/blobs/\(id)", GatewayResponse(response), type: "image/png")
        log.check(
            "GET", "/v1/blobs/\(id)", GatewayResponse(try await ana.getBlob(id, holding: response.headers["ETag"])))
        log.check("GET", "/v1/blobs/\(id)", GatewayResponse(try await ana.getBlob(UUID())))
        try ana.fixture.withDatabase {
            _ = try $0.run("UPDATE blob.content SET bytes = \(Bytea(Array(png.prefix(9)))) WHERE id = \(id)")
        }
        log.check("GET", "/v1/blobs/\(id)", GatewayResponse(try await ana.getBlob(id)))
        for method in ["PUT", "GET"] {
            let response = try await ana.fixture.client.send(ana.request(method, "/v1/blobs/x"))
            log.check(method, "/v1/blobs/x", GatewayResponse(response))
        }
        for _ in 0..<GatewayLimits().unreferencedBlobCountMax {
            log.check("PUT", "/v1/blobs/\(id)", try await ana.putBlob(UUID()))
        }
    }

    private static func outlineResponses(
        _ ana: GatewayDevice, _ unauthenticated: GatewayDevice, _ outsider: GatewayDevice, _ log: ContractLog
    ) async throws {
        for device in [ana, unauthenticated, outsider] {
            log.check("GET", "/v1/outline", GatewayResponse(try await device.outline()))
        }
        try ana.fixture.setOutline([[12, 55], [12.5, 55.5]])
        let outline = try await ana.outline()
        log.check("GET", "/v1/outline", GatewayResponse(outline), type: "application/geo+json")
        let unchanged = try await ana.outline(holding: outline.headers["ETag"])
        log.check("GET", "/v1/outline", GatewayResponse(unchanged))
    }

    private static func schemaResponses(
        _ ana: GatewayDevice, _ unauthenticated: GatewayDevice, _ outsider: GatewayDevice, _ log: ContractLog
    ) async throws {
        for device in [ana, unauthenticated, outsider] {
            log.check("GET", "/v1/schema", GatewayResponse(try await device.schema()))
        }
        try ana.fixture.apply(#"{"kinds":{"Inspection":{"realms":["user"],"properties":{"site":{"type":"string"}}}}}"#)
        let schema = try await ana.schema()
        log.check("GET", "/v1/schema", GatewayResponse(schema))
        log.check("GET", "/v1/schema", GatewayResponse(try await ana.schema(holding: schema.headers["ETag"])))
    }

    private static func credentialResponses(
        _ ana: GatewayDevice, _ unauthenticated: GatewayDevice, _ outsider: GatewayDevice, _ log: ContractLog
    ) async throws {
        let path = "/v1/credentials/compass"
        let good = #"{"user":"ana","password":"secret"}"#
        let long = #"{"user":"ana","password":"\#(String(repeating: "x", count: 5_000))"}"#
        let cases: [(GatewayDevice, String, String?)] = [
            (ana, "PUT", good), (ana, "PUT", "{}"), (ana, "PUT", long), (unauthenticated, "PUT", good),
            (outsider, "PUT", good), (ana, "DELETE", nil), (unauthenticated, "DELETE", nil), (outsider, "DELETE", nil),
        ]
        for (device, method, body) in cases {
            let request = device.request(method, path, body)
            log.check(method, path, GatewayResponse(try await ana.fixture.client.send(request)))
        }
        var request = ana.request("PUT", path, good)
        request.headers = [("Authorization", "Bearer \(ana.token)"), ("Content-Type", "text/plain")]
        log.check("PUT", path, GatewayResponse(try await ana.fixture.client.send(request)))
    }

    /// Every rejection code is in the document's list.
    @Test func everyRejectionIsInTheDocument() throws {
        let parts = try Self.schemas()["Rejection"]?["allOf"]?.array() ?? []
        let listed = Set(parts.flatMap { $0["properties"]?["type"]?["enum"]?.texts ?? [] })
        let codes = MutationProblem.Code.allCases.map(\.rawValue)
        #expect(listed == Set(codes.map { "urn:fieldpost:problem:\($0)" }))
    }

    @Test func everyKindIsInTheDocument() throws {
        let schemas = try Self.schemas()
        let realms: [RealmClass] = [
            .users, .user, .catalogue(UUID()), .common, .manager, .archive, .team(UUID()),
            .share(UUID()),
        ]
        let kinds = Set(realms.flatMap(PermissionTable.kinds(in:)))
        #expect(kinds == Set(Kind.allCases.filter(Permissions.isReadByIntegrations)))
        let names = Set(kinds.map(\.rawValue))
        #expect(schemas["KindName"]?["anyOf"]?.array().first?["enum"]?.texts == names)
        let uses = [
            schemas["Mutation"]?["properties"]?["kind"], schemas["SyncRequest"]?["properties"]?["kinds"]?["items"],
        ]
        #expect(uses.allSatisfy { $0?["$ref"]?.string == "#/components/schemas/KindName" })
    }
}

/// The received responses, each checked against the document.
private final class ContractLog: Sendable {
    let document: String
    /// As in `/v1/sync post 200`.
    let seen = Mutex<Set<String>>([])

    init(document: String) { self.document = document }

    /// - Parameter type: The content type of a response with status 200.
    func check(
        _ method: String, _ path: String, _ response: GatewayResponse, type expected: String = "application/json"
    ) {
        var route = String(path.split(separator: "?")[0])
        if route.hasPrefix("/v1/blobs/") { route = "/v1/blobs/{id}" }
        seen.withLock { _ = $0.insert("\(route) \(method.lowercased()) \(response.status)") }
        let type = response.headers["Content-Type"] ?? ""
        guard response.status != 200 else {
            #expect(type == (["/v1/sync", "/sync/stream"].contains(route) ? "application/x-ndjson" : expected))
            return
        }
        guard response.status >= 400 else {
            #expect(response.body.isEmpty)
            return
        }
        #expect(type == "application/problem+json")
        let problem = response.problem ?? "none"
        #expect(document.contains("`\(problem)`"), "\(route) \(response.status): \(problem) is not in the document")
        #expect(response.json["status"] as? Int == response.status && response.json["title"] is String)
        #expect((response.status == 401) == (response.headers["WWW-Authenticate"] != nil))
        #expect((response.status == 503) == (response.headers["Retry-After"] != nil))
    }
}
