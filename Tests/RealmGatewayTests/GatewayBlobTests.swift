import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Upload and download of images.
@Suite(.ownThreads) struct GatewayBlobTests {
    @Test(arguments: ImageType.allCases) func uploadedBlobIsReturned(type: ImageType) async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (id, bytes) = (UUID(), TestImage.make(type))
            let added = try await ana.putBlob(id, bytes)
            #expect(added.status == 201 && added.body.isEmpty)
            let blob = try await ana.getBlob(id)
            #expect(blob.status == 200 && blob.body == bytes)
            #expect(blob.headers["Content-Type"] == type.rawValue)
            #expect(blob.headers["X-Content-Type-Options"] == "nosniff")
            #expect(blob.headers["Cache-Control"] == "private, max-age=31536000, immutable")
            let tag = try #require(blob.headers["ETag"])
            #expect(tag == added.headers["ETag"] && tag.hasPrefix("\""))
            for held in [tag, "\"x\", W/\(tag)", "*"] {
                let same = try await ana.getBlob(id, holding: held)
                #expect(same.status == 304 && same.body.isEmpty && same.headers["ETag"] == tag, "\(held)")
                #expect(same.headers["Content-Length"] == nil)
            }
            #expect(try await ana.getBlob(id, holding: "\"x\"").status == 200)
        }
    }

    @Test func documentIsReturnedAsSent() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (id, bytes) = (UUID(), Array("%PDF-1.7\n1 0 obj <</Author (Ana)>> endobj\n%%EOF\n".utf8))
            #expect(try await ana.putBlob(id, bytes).status == 201)
            #expect(try await ana.putBlob(id, bytes).status == 204)
            let blob = try await ana.getBlob(id)
            #expect(blob.status == 200 && blob.body == bytes)
            #expect(blob.headers["Content-Type"] == "application/pdf")
            #expect(blob.headers["Content-Disposition"] == "attachment")
            #expect(blob.headers["X-Content-Type-Options"] == "nosniff")
            let cut = try await ana.putBlob(UUID(), Array(bytes.dropLast(3)))
            #expect(cut.status == 422 && cut.problem == "document-malformed")
        }
    }

    @Test func blobNeverChanges() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            #expect(try await ana.putBlob(id).status == 201)
            #expect(try await ana.putBlob(id).status == 204)
            let other = try await ana.putBlob(id, TestImage.make(.png, "another"))
            #expect(other.status == 409 && other.problem == "blob-taken")
            #expect(try await ana.getBlob(id).body == TestImage.make())
        }
    }

    static let unsupportedBodies: [[UInt8]] = [
        [], Array("GIF89a picture".utf8), Array("<html>".utf8), Array("RIFF    WAVEfmt ".utf8), [0xFF, 0xD8],
        Array(TestImage.make(.png).dropFirst()), Array("    ".utf8) + TestImage.make(.webp),
    ]

    @Test(arguments: unsupportedBodies) func otherFormatsAreRejected(bytes: [UInt8]) async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            let response = try await ana.putBlob(id, bytes)
            #expect(response.status == 415 && response.problem == "image-unsupported")
            #expect(try await ana.getBlob(id).status == 404)
        }
    }

    @Test func sizeIsLimitedToOneMebibyte() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (longest, longer) = (UUID(), UUID())
            let bytes = TestImage.make(count: 1 << 20)
            #expect(try await ana.putBlob(longest, bytes).status == 201)
            #expect(try await ana.getBlob(longest).body == bytes)
            let response = try await ana.putBlob(longer, bytes + [0])
            #expect(response.status == 413 && response.problem == "body-too-large")
            #expect(response.body.contains("\"bytesMax\":1048576"))
            #expect(response.headers["Content-Type"] == "application/problem+json")
            #expect(try await ana.getBlob(longer).status == 404)
        }
    }

    @Test func idMustBeAUUID() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            for method in ["GET", "PUT"] {
                let response = GatewayResponse(
                    try await fixture.client.send(ana.request(method, "/v1/blobs/picture", "{}")))
                #expect(response.status == 400 && response.problem == "malformed-request")
            }
            let id = UUID()
            try await ana.putBlob(id)
            let capitals = ana.request("GET", "/v1/blobs/\(id.uuidString)")
            #expect(try await fixture.client.send(capitals).status == 200)
        }
    }

    /// Unreferenced blobs are limited, also with concurrent requests.
    @Test func unreferencedBlobsAreLimited() async throws {
        var limits = GatewayLimits()
        limits.unreferencedBlobCountMax = 3
        try await withGateway(count: 2, limits: limits) { fixture in
            let (ana, there) = (
                try await fixture.device("ana@example.com"), try await fixture.device("ana@example.com", gateway: 1)
            )
            // Without a lock, all would count before the first one is stored.
            try fixture.withDatabase { connection in
                try connection.runScript(
                    """
                    CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0
                    AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NEW; END $$;
                    CREATE TRIGGER wait BEFORE INSERT ON blob.content FOR EACH ROW EXECUTE FUNCTION public.wait()
                    """)
            }
            let lock = try await HeldLocks(fixture, ["SELECT pg_advisory_xact_lock(42)"])
            defer { lock.release() }
            async let sending = withThrowingTaskGroup { group in
                for number in 0..<12 {
                    let id = UUID()
                    group.addTask { (id, try await (number % 2 == 0 ? ana : there).putBlob(id)) }
                }
                return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
            try await eventually("the uploads wait for each other") {
                try fixture.withDatabase { connection in
                    try connection.run(.lockWaits).count > 5
                }
            }
            lock.release()
            let responses = try await sending
            #expect(responses.values.filter { $0.status == 201 }.count == 3)
            #expect(responses.values.filter { $0.problem == "too-many-blobs" && $0.status == 429 }.count == 9)
            // Another person's blobs do not count, and a stored blob may be sent again.
            let stored = try #require(responses.first { $0.value.status == 201 }?.key)
            #expect(try await fixture.device("bo@example.com").putBlob(UUID()).status == 201)
            #expect(try await ana.putBlob(stored).status == 204)
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\",\"image\":\"\(stored.text)\"}", in: .manager)
            #expect(try await ana.putBlob(UUID()).status == 201)
            #expect(try await ana.putBlob(UUID()).status == 429)
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            for _ in 0..<5 { #expect(try await books.putBlob(UUID()).status == 201) }
        }
    }

    /// Every person reads a `Person` object and its image's id: no other person can claim the id.
    @Test(arguments: [true, false]) func referencedIDCannotBeClaimed(isInCapitals: Bool) async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (me, id) = (try fixture.person("ana@example.com"), UUID())
            let text = isInCapitals ? id.uuidString : id.text
            let name = await ana.mutation("patch", me, "{\"avatar\":\"\(text)\"}", kind: "Person", in: "/common")
            #expect(try await ana.send([name]).results[0].hasPrefix("accepted"))
            let mallory = try await fixture.device("mallory@example.com")
            for device in [mallory, ana] {
                let response = try await device.putBlob(id)
                #expect(response.status == 409 && response.problem == "blob-referenced")
            }
            #expect(try await ana.getBlob(id).status == 404)
        }
    }

    @Test func environmentsAreIsolated() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            try await ana.putBlob(id)
            try fixture.put(.team, UUID(), "{\"name\":\"t\",\"image\":\"\(id.text)\"}", in: .common)
            let books = GatewayDevice(fixture, bearer: try fixture.addEnvironment(2))
            #expect(try await !books.seesBlob(id))
            // References and bytes of the other environment have no effect on this one.
            #expect(try await books.putBlob(id, TestImage.make(.webp)).status == 201)
            #expect(try await books.getBlob(id).headers["Content-Type"] == "image/webp")
            #expect(try await ana.getBlob(id).headers["Content-Type"] == "image/png")
        }
    }

    @Test func integrationReadsAllUntilItsRemoval() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            let (theirs, own) = (UUID(), UUID())
            try await ana.putBlob(theirs)
            #expect(try await !books.seesBlob(theirs))
            try fixture.put(.fieldTask, UUID(), "{\"title\":\"t\",\"image\":\"\(theirs.text)\"}", in: .manager)
            #expect(try await books.seesBlob(theirs))
            #expect(try await books.putBlob(own).status == 201)
            #expect(try await books.seesBlob(own))
            try fixture.withDatabase { _ = try $0.run("DELETE FROM access.integration") }
            #expect(try await books.getBlob(own).status == 401)
            #expect(try await books.putBlob(UUID()).status == 401)
        }
    }

    /// Before `fieldpost migrate --finish`, everything except blobs works.
    @Test func missingTableIsReportedAsUnavailable() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            try fixture.withDatabase { try $0.runScript("DROP SCHEMA blob CASCADE") }
            for response in [try await ana.putBlob(UUID()), GatewayResponse(try await ana.getBlob(UUID()))] {
                #expect(response.status == 503 && response.problem == "database-unavailable")
            }
            try fixture.put(.team, UUID(), "{\"name\":\"t\",\"image\":\"\(UUID().text)\"}", in: .common)
        }
    }
}
