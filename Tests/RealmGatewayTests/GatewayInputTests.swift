import Essentials
import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Invalid input is rejected with a clear problem, and blocks neither other clients nor the rest of its queue.
@Suite(.ownThreads) struct GatewayInputTests {
    @Test func invalidMutationsAreRejectedIndividually() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let id = UUID()
            let nested = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
            let cases: [(String, String)] = [
                (await phone.mutation("put", UUID(), "{\"text\":\"a\\u0000b\"}"), "invalid-json"),
                (await phone.mutation("put", UUID(), "{\"durationSeconds\":1e999}"), "invalid-json"),
                (await phone.mutation("put", UUID(), "{\"reporting\":\(nested)}"), "invalid-json"),
                (await phone.mutation("put", UUID(), "{\"text\":\"a\",\"text\":\"b\"}"), "invalid-json"),
                (
                    await phone.mutation("put", UUID(), "{\"text\":\"\(String(repeating: "x", count: 70_000))\"}"),
                    "too-large"
                ),
                (await phone.mutation("put", UUID(), "{\"colour\":\"red\"}"), "unknown-field"),
                (await phone.mutation("put", UUID(), "{\"backendId\":\"4711\"}"), "field-not-allowed"),
                (await phone.mutation("put", UUID(), "{\"status\":\"released\"}"), "status-not-allowed"),
                (await phone.mutation("put", UUID(), "{\"durationSeconds\":\"long\"}"), "invalid-field"),
                (
                    // A form that only the C library's scanner accepts as a UUID.
                    await phone.mutation(
                        "put", UUID(),
                        "{\"kind\":\"Note\",\"item\":\"\(UUID())\","
                            + "\"recipient\":\"+b7f3f5e-0000-4000-8000-000000000000\"}", kind: "SharedItem"),
                    "invalid-field"
                ),
                (await phone.mutation("put", UUID(), "{\"name\":\"x\"}", kind: "User"), "kind-not-allowed"),
                (await phone.mutation("put", UUID(), "{}", kind: "Nonsense"), "unknown-kind"),
                (await phone.mutation("patch", UUID(), "{\"text\":\"x\"}"), "unknown-object"),
                (await phone.mutation("put", UUID()), "fields-mismatch"),
                (await phone.mutation("push", UUID(), "{}"), "malformed-mutation"),
                (
                    await phone.mutation("put", UUID(), "{}").replacingOccurrences(
                        of: "/users/ana", with: "/users/ben"),
                    "realm-not-permitted"
                ),
                (await phone.mutation("put", id, "{\"text\":\"good\"}"), "accepted"),
            ]
            let response = try await phone.send(cases.map(\.0))
            #expect(response.status == 200, "\(response.body)")
            #expect(response.results.map { $0.hasPrefix("accepted") ? "accepted" : $0 } == cases.map(\.1))
            #expect(try fixture.entries(await phone.realm).count == 1)
        }
    }

    @Test func malformedRequestsAreRejected() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let id = phone.clientID
            let cases: [(String, String, Int, String)] = [
                ("mutations", "{", 400, "malformed-request"),
                ("mutations", "[]", 400, "malformed-request"),
                ("mutations", "{\"clientId\":\"x\",\"mutations\":[{\"sequence\":1}]}", 400, "malformed-request"),
                ("mutations", "{\"clientId\":\"\(id)\",\"mutations\":[]}", 400, "malformed-request"),
                ("mutations", "{\"clientId\":\"\(id)\",\"mutations\":[{}]}", 400, "malformed-request"),
                ("mutations", "{\"clientId\":\"\(id)\",\"mutations\":[{\"sequence\":1.5}]}", 400, "malformed-request"),
                ("mutations", "{\"clientId\":\"\(id)\",\"mutations\":[{\"sequence\":0}]}", 400, "malformed-request"),
                (
                    "mutations", "{\"clientId\":\"\(id)\",\"mutations\":[{\"sequence\":1},{\"sequence\":3}]}", 409,
                    "sequence-gap"
                ),
                (
                    "mutations", "{\"clientId\":\"\(id)\",\"mutations\":[{\"sequence\":1},{\"sequence\":1}]}", 400,
                    "malformed-request"
                ),
                ("mutations", "{\"clientId\":\"\(id)\",\"mutations\":[],\"more\":1}", 400, "malformed-request"),
                ("mutations", "{\"x\":\"\(String(repeating: "x", count: 1 << 20))\"}", 413, "body-too-large"),
                ("sync", "{\"x\":\"\(String(repeating: "x", count: 600_000))\"}", 413, "body-too-large"),
                ("sync", "nonsense", 400, "malformed-request"),
                ("sync", "{\"live\":1}", 400, "malformed-request"),
                ("sync", "{\"realms\":{\"/users/a b\":null}}", 400, "malformed-request"),
                ("sync", "{\"realms\":{\"/users/a\":7}}", 400, "malformed-request"),
            ]
            for (path, body, status, problem) in cases {
                let response = GatewayResponse(
                    try await fixture.client.send(phone.request("POST", "/v1/\(path)", body)))
                #expect(response.status == status, "\(path) \(body.prefix(80))")
                #expect(response.problem == problem, "\(path) \(body.prefix(80)): \(response.body)")
                #expect(response.headers["Content-Type"] == "application/problem+json")
            }
            let many = (1...501).map { "{\"sequence\":\($0)}" }
            #expect(try await phone.send(many).status == 400)
            var text = phone.request("POST", "/v1/sync", "{}")
            text.headers = [("Authorization", "Bearer \(phone.token)"), ("Content-Type", "text/plain")]
            #expect(GatewayResponse(try await fixture.client.send(text)).status == 415)
            #expect(GatewayResponse(try await fixture.client.send(phone.request("GET", "/v1/sync"))).status == 405)
            #expect(GatewayResponse(try await fixture.client.send(phone.request("GET", "/v1/nothing"))).status == 404)
        }
    }

    /// One displayed character can have any number of bytes.
    @Test func problemsTruncateLongQuotes() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let long = "x" + String(repeating: "\u{301}", count: 20_000)
            for (path, body) in [
                ("sync", #"{"\#(long)":1}"#), ("sync", #"{"all":true,"kinds":["\#(long)"]}"#),
                ("sync", #"{"realms":{"/\#(long)":null}}"#), ("sync", #"{"only":["/\#(long)"]}"#),
                ("mutations", #"{"\#(long)":1}"#),
            ] {
                let response = GatewayResponse(
                    try await fixture.client.send(phone.request("POST", "/v1/\(path)", body)))
                #expect(response.status == 400 && response.body.unicodeScalars.contains("\u{301}"))
                #expect(response.body.utf8.count < 1_000, "\(body.prefix(20)): \(response.body.utf8.count) bytes")
            }
            let unknown = #"{"\#(long)":1,"sequence""#
            let mutations = [
                await phone.mutation("put", UUID(), "{}").replacing(#"{"sequence""#, with: unknown),
                await phone.mutation("put", UUID(), "{}", kind: long),
                await phone.mutation("put", UUID(), #"{"\#(long)":1}"#),
                await phone.mutation("put", UUID(), #"{"text":{"\#(long)":1,"\#(long)":2}}"#),
                await phone.mutation(
                    "put", UUID(), #"{"operation":"modify","fields":{"\#(long)":1}}"#, kind: "DefectCommand"),
            ]
            let results = [
                "malformed-mutation", "unknown-kind", "unknown-field", "invalid-json", "invalid-field",
            ]
            for (mutation, result) in zip(mutations, results) {
                let response = try await phone.send([mutation])
                #expect(response.results == [result])
                #expect(response.body.utf8.count < 2_000, "\(result): \(response.body.utf8.count) bytes")
            }
        }
    }

    /// The documented maximum of realms, with cursors of maximum length, is accepted; one more is rejected.
    @Test func requestMayNameAThousandRealms() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            func response(_ count: Int) async throws -> GatewayResponse {
                let cursor = "1:9000000000000000000:9000000000000000000:TimeEntry:\(UUID())"
                let realms = (0..<count).map { _ in "\"/teams/\(UUID().uuidString.lowercased())\":\"\(cursor)\"" }
                let body = "{\"realms\":{\(realms.joined(separator: ","))}}"
                return GatewayResponse(try await fixture.client.send(phone.request("POST", "/v1/sync", body)))
            }
            let most = try await response(1_000)
            #expect(most.status == 200, "\(most.body.prefix(300))")
            #expect(most.body.components(separatedBy: "{\"closed\":{\"realm\":\"/teams/").count == 1_001)
            let more = try await response(1_001)
            #expect(more.status == 400 && more.body.contains("at most 1000 "), "\(more.body.prefix(300))")
        }
    }

    /// A signed claim may contain text that PostgreSQL cannot store.
    @Test func tokenWithAZeroByteIsRejected() async throws {
        try await withGateway { fixture in
            for (email, subject) in [("ana@example.com", "a\u{0}na"), ("an\u{0}a@example.com", "ana")] {
                let token = try await fixture.keys.token(email, subject: subject)
                let response = GatewayResponse(
                    try await fixture.client.send(
                        Request(fixture.url("/v1/realms"), headers: [("Authorization", "Bearer \(token)")])))
                #expect(response.status == 401 && response.problem == "invalid-token", "\(response.body)")
            }
        }
    }

    @Test func callersOutsideTheOrganisationAreRejected() async throws {
        try await withGateway { fixture in
            let without = GatewayResponse(try await fixture.client.send(Request(fixture.url("/v1/realms"))))
            #expect(without.status == 401)
            #expect(without.problem == "token-missing")
            #expect(without.headers["WWW-Authenticate"] == "Bearer")

            func realms(_ email: String, subject: String? = nil, expiresIn: Int = 600) async throws -> GatewayResponse {
                let token = try await fixture.keys.token(email, subject: subject, expiresIn: expiresIn)
                return GatewayResponse(
                    try await fixture.client.send(
                        Request(fixture.url("/v1/realms"), headers: [("Authorization", "Bearer \(token)")])))
            }
            let expired = try await realms("ana@example.com", expiresIn: -3600)
            #expect(expired.status == 401)
            #expect(expired.headers["WWW-Authenticate"]?.contains("invalid_token") == true)
            #expect(try await realms("ana@elsewhere.com").problem == "not-a-member")
            #expect(try await realms("ana@example.com").status == 200)
            // Another account with the same address, and the same person with another one.
            #expect(try await realms("ana@example.com", subject: "other").problem == "identity-bound-elsewhere")
            let renamed = try await realms("ana.b@example.com", subject: "ana@example.com")
            let me = try fixture.person("ana@example.com").text
            #expect(
                renamed.body
                    == "{\"realms\":[{\"realm\":\"/users/ana@example.com\",\"permissions\":[\"read\",\"write\"]},"
                    + "{\"realm\":\"/common\",\"permissions\":[\"read\",\"write\"]}],\"person\":\"\(me)\"}")
            // An invited guest of another domain.
            try fixture.withDatabase { connection in
                _ = try connection.run(
                    "INSERT INTO access.person (environment_id, email) VALUES (1, 'guest@elsewhere.com')")
            }
            #expect(try await realms("guest@elsewhere.com").status == 200)
        }
    }

    @Test func otherUsersRealmIsClosed() async throws {
        try await withGateway { fixture in
            let ben = try await GatewayDevice(fixture, "ben@example.com")
            _ = try await ben.send([await ben.mutation("put", UUID(), "{\"text\":\"secret\"}")])
            let ana = try await GatewayDevice(fixture, "ana@example.com")
            let body = "{\"realms\":{\"/users/ben@example.com\":null,\"/users\":null}}"
            let response = GatewayResponse(try await fixture.client.send(ana.request("POST", "/v1/sync", body)))
            #expect(response.status == 200)
            #expect(response.body.contains("{\"closed\":{\"realm\":\"/users/ben@example.com\"}}\n"))
            #expect(response.body.contains("{\"closed\":{\"realm\":\"/users\"}}\n"))
            #expect(!response.body.contains("secret"))
        }
    }
}
