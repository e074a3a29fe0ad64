import Foundation
import HTTPClient
import Model
import Postgres
import Tenants
import TestSupport
import Testing

@testable import RealmGateway

/// `GET /v1/outline`.
@Suite(.ownThreads) struct GatewayOutlineTests {
    @Test func outlineOfOwnEnvironmentIsReturned() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            let other = GatewayDevice(fixture, bearer: try fixture.addEnvironment(2))
            for device in [ana, books, other] {
                let missing = GatewayResponse(try await device.outline())
                #expect(missing.status == 404 && missing.problem == "outline-unknown")
            }
            try fixture.setOutline([[12, 55], [12.5, 55.5]])
            for device in [ana, books] {
                let outline = GatewayResponse(try await device.outline())
                #expect(outline.status == 200)
                #expect(
                    outline.body == #"{"features":[{"geometry":{"coordinates":[[[12,55],[12.5,55.5]]],"#
                        + #""type":"MultiLineString"},"properties":null,"type":"Feature"}],"type":"FeatureCollection"}"#
                )
                #expect(outline.headers["Content-Type"] == "application/geo+json")
                #expect(outline.headers["Cache-Control"] == "private, no-cache")
                #expect(outline.headers["X-Content-Type-Options"] == "nosniff")
            }
            #expect(try await other.outline().status == 404)
            try fixture.setOutline([[1, 2], [3, 4]], in: 2)
            #expect(GatewayResponse(try await other.outline()).body.contains("[[[1,2],[3,4]]]"))
            #expect(!GatewayResponse(try await ana.outline()).body.contains("[[[1,2],[3,4]]]"))
            for bearer in ["x.y.z", "fpk_unknown"] {
                #expect(try await GatewayDevice(fixture, bearer: bearer).outline().status == 401)
            }
        }
    }

    @Test func tagChangesWithTheOutline() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            try fixture.setOutline([[12, 55], [12.5, 55.5]])
            let tag = try #require(try await ana.outline().headers["ETag"])
            for held in [tag, "\"x\", W/\(tag)", "*"] {
                let same = try await ana.outline(holding: held)
                #expect(same.status == 304 && same.body.isEmpty && same.headers["ETag"] == tag, "\(held)")
                #expect(same.headers["Cache-Control"] == "private, no-cache")
            }
            try fixture.setOutline([[12, 55], [12.5, 55.6]])
            let changed = try await ana.outline(holding: tag)
            #expect(changed.status == 200 && changed.headers["ETag"] != tag)
            try fixture.withDatabase { _ = try $0.run(OutlineStore.remove(from: fixture.environment)) }
            #expect(try await ana.outline(holding: tag).status == 404)
        }
    }

    /// While a database still has the schema of the previous release.
    @Test func outlineIsUnknownBeforeItsSchemaFile() async throws {
        try await withGateway { fixture in
            try fixture.withDatabase { _ = try $0.run("DROP TABLE access.outline") }
            let ana = try await fixture.device("ana@example.com")
            #expect(GatewayResponse(try await ana.outline()).problem == "outline-unknown")
        }
    }
}

extension GatewayFixture {
    /// Stores an outline of one line.
    func setOutline(_ positions: [[Double]], in environment: Int32 = 1) throws {
        let file = Data(#"{"type": "LineString", "coordinates": \#(positions)}"#.utf8)
        let outline = try JSONDecoder().decode(MapOutline.self, from: file)
        try withDatabase {
            _ = try $0.run(OutlineStore.save(outline, in: EnvironmentID(rawValue: environment)))
        }
    }
}

extension GatewayDevice {
    nonisolated func outline(holding tag: String? = nil) async throws -> HTTPClient.Response {
        var request = request("GET", "/v1/outline")
        if let tag { request.headers.append(("If-None-Match", tag)) }
        return try await fixture.client.send(request)
    }
}
