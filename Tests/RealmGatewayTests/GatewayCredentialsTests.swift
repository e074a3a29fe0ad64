import BackendConnections
import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import RealmGateway

/// People's own logins of HCL Compass: encrypted, never returned, and described by an object.
@Suite(.ownThreads) struct GatewayCredentialsTests {
    private static let path = "/v1/credentials/compass"

    private func send(
        _ device: GatewayDevice, _ method: String = "PUT", _ body: String? = nil
    ) async throws -> GatewayResponse {
        GatewayResponse(try await device.fixture.client.send(device.request(method, Self.path, body)))
    }

    private func login(_ fixture: GatewayFixture, _ email: String) throws -> (user: String?, secret: String)? {
        let realm = try fixture.realm(try RealmPath.user(email))
        return try fixture.withDatabase { connection in
            let rows = try connection.run(OwnDefectLogin.load([realm], in: fixture.environment))
            guard let own = try OwnDefectLogin.byRealm(rows)[realm] else { return nil }
            let context = SecretContext.personalDefectLogin(fixture.environment, realm: realm)
            let box = try SecretBox([GatewayFixture.secretKey])
            return (own.user, try box.openText(own.sealed.bytes, at: context))
        }
    }

    private func accounts(_ fixture: GatewayFixture) throws -> [DefectAccount] {
        try fixture.withDatabase { connection in
            try connection.run(
                "SELECT fields FROM store.object WHERE kind = \(Kind.defectAccount) AND NOT deleted"
            ).decode(CanonicalJSON.self).map { try JSONDecoder().decode(DefectAccount.self, from: Data($0.bytes)) }
        }
    }

    @Test func loginIsEncryptedAndItsAccountHasNoSecret() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let response = try await send(ana, "PUT", #"{"user":"ana","password":"first-secret"}"#)
            #expect(response.status == 204 && response.body.isEmpty)
            #expect(try login(fixture, "ana@example.com") ?? (nil, "") == ("ana", "first-secret"))
            #expect(try accounts(fixture).map(\.status) == [.unchecked])
            #expect(try accounts(fixture).map(\.user) == ["ana"])
            // Another login replaces it, even if the first was verified.
            #expect(try await send(ana, "PUT", #"{"token":"c2Vjb25k"}"#).status == 204)
            #expect(try login(fixture, "ana@example.com") ?? ("", "") == (nil, "c2Vjb25k"))
            #expect(try accounts(fixture).map(\.user) == [nil])
            // No readable object contains it.
            let stored = try fixture.withDatabase { connection in
                try connection.run("SELECT fields FROM store.object").decode(CanonicalJSON?.self)
            }
            for json in stored.compactMap({ $0.map { String(decoding: $0.bytes, as: UTF8.self) } }) {
                #expect(!json.contains("first-secret") && !json.contains("c2Vjb25k"))
            }
        }
    }

    @Test func removalDeletesTheLoginAndItsObject() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            #expect(try await send(ana, "DELETE").status == 204)
            #expect(try await send(ana, "PUT", #"{"user":"ana","password":"s"}"#).status == 204)
            #expect(try await send(ana, "DELETE").status == 204)
            #expect(try login(fixture, "ana@example.com") == nil)
            #expect(try accounts(fixture).isEmpty)
            // A new login can be stored.
            #expect(try await send(ana, "PUT", #"{"user":"ana","password":"t"}"#).status == 204)
            #expect(try accounts(fixture).map(\.status) == [.unchecked])
        }
    }

    @Test(arguments: [
        "", "[]", "7", "{}", #"{"user":"ana"}"#, #"{"password":"top-secret"}"#, #"{"user":"","password":"top-secret"}"#,
        #"{"user":"ana","password":""}"#, #"{"user":"ana","password":"top-secret","token":"t"}"#,
        #"{"user":"ana","password":7}"#, #"{"token":"top secret"}"#, #"{"token":null}"#,
        #"{"user":"ana","password":"top-secret","x":"y"}"#, #"{"user":"a\u0000","password":"top-secret"}"#,
        #"{"user":"ana","password":"\#(String(repeating: "p", count: 1_001))"}"#,
    ]) func malformedLoginIsRejectedWithoutQuotingIt(body: String) async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let response = try await send(ana, "PUT", body)
            #expect(response.status == 400 && response.problem == "malformed-request", "\(response.body)")
            #expect(!response.body.contains("top"))
            #expect(try accounts(fixture).isEmpty)
        }
    }

    @Test func loginNeedsAPersonAndASecretKey() async throws {
        let body = #"{"user":"ana","password":"s"}"#
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            for method in ["PUT", "DELETE"] {
                let response = try await send(books, method, method == "PUT" ? body : nil)
                #expect(response.status == 403 && response.problem == "person-only")
            }
        }
        try await withGateway(secretKeys: []) { fixture in
            let ana = try await fixture.device("ana@example.com")
            let response = try await send(ana, "PUT", body)
            #expect(response.status == 503 && response.problem == "credentials-unavailable")
            #expect(response.headers["Retry-After"] != nil)
        }
    }

    /// Commands are executed in the order of submission, also those of one request.
    @Test func positionsFollowTheOrderOfARequestsMutations() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let ids = (0..<30).map { _ in UUID() }
            var mutations: [String] = []
            for id in ids + [ids[3]] {
                let fields = #"{"operation":"delete","record":"R\#(mutations.count)"}"#
                mutations.append(await ana.mutation("put", id, fields, kind: "DefectCommand"))
            }
            #expect(try await ana.send(mutations).status == 200)
            let stored = try fixture.withDatabase { connection in
                try connection.run(
                    "SELECT id FROM store.object WHERE kind = \(Kind.defectCommand) ORDER BY edit_position"
                ).decode(UUID.self)
            }
            #expect(stored == ids.filter { $0 != ids[3] } + [ids[3]])
        }
    }

    /// A database role without read access to secrets stores, replaces and removes them.
    @Test func storingALoginNeedsNoReadPrivilege() throws {
        var acme = try TestEnvironment()
        let realm = try acme.realm(.user("ana@example.com"))
        let role = "service_\(UInt32.random(in: 0 ... .max))"
        try acme.connection.runScript(
            """
            CREATE ROLE \(role);
            GRANT USAGE ON SCHEMA backend, realm TO \(role);
            GRANT INSERT, DELETE, SELECT (environment_id, realm_id) ON backend.defect_account TO \(role);
            SET ROLE \(role)
            """)
        for secret in [UInt8(1), 2] {
            let own = OwnDefectLogin(user: "ana", sealed: Bytea([secret]))
            try acme.connection.run(own.save(of: realm, in: acme.id, decision: 0))
        }
        #expect(throws: PostgresError.self) {
            try acme.connection.run(OwnDefectLogin.load([realm], in: acme.id))
        }
        try acme.connection.run("RESET ROLE")
        let stored = try OwnDefectLogin.byRealm(acme.connection.run(OwnDefectLogin.load([realm], in: acme.id)))
        #expect(stored[realm]?.sealed == Bytea([2]))
        try acme.connection.runScript("SET ROLE \(role)")
        try acme.connection.run(OwnDefectLogin.remove(of: realm, in: acme.id, decision: 0))
        try acme.connection.runScript("RESET ROLE; DROP OWNED BY \(role); DROP ROLE \(role)")
    }

    /// A submitted command cannot be changed, and only its owner may submit it.
    @Test func submittedCommandIsClosed() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            func change(_ operation: String, _ fields: String?) async throws -> Substring? {
                let mutation = await ana.mutation(operation, id, fields, kind: "DefectCommand")
                return try await ana.send([mutation]).results.first?.split(separator: " ").first
            }
            #expect(try await change("put", #"{"operation":"delete","record":"SAMPL00000001"}"#) == "accepted")
            #expect(try await change("patch", #"{"status":"done"}"#) == "field-not-allowed")
            #expect(try await change("patch", #"{"submitRequested":true}"#) == "accepted")
            #expect(try await change("patch", #"{"record":"SAMPL00000002"}"#) == "closed")
            #expect(try await change("put", #"{"operation":"create"}"#) == "closed")
            #expect(try await change("delete", nil) == "accepted")
        }
    }
}
