import Crypto
import Foundation
import HTTP
import Model
import Postgres
import Realms
import Testing

@testable import RealmGateway

/// Programs that come in with a key of ours, or with a token of the identity provider.
@Suite struct GatewayIntegrationTests {
    private func addKey(_ fixture: GatewayFixture, _ name: String = "books") throws -> String {
        let key = IntegrationKey.make()
        let hash = Bytea(Array(SHA256.hash(data: Array(key.utf8))))
        try fixture.withDatabase { connection in
            _ = try connection.run(
                "INSERT INTO access.integration (environment_id, name, key_hash) VALUES (1, \(name), \(hash))")
        }
        return key
    }

    private func status(_ fixture: GatewayFixture, _ bearer: String) async throws -> Answer {
        let caller = GatewayDevice(fixture, bearer: bearer)
        return Answer(try await fixture.client.send(caller.request("GET", "/v1/realms")))
    }

    @Test func aKeyOpensEveryRealmAndWritesWhatIsTheServers() async throws {
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try addKey(fixture))
            let ana = try await fixture.device("ana@example.com")
            let (entry, realm) = (UUID(), await ana.realm)
            _ = try await ana.send([await ana.mutation("put", entry, "{\"text\":\"roof\",\"submitRequested\":true}")])
            let following = Task { try await books.follow(naming: [realm, "/users", "/manager", "/polls"]) }
            defer { following.cancel() }
            try await books.wait("the entry") { $0.shown(realm).count == 1 }
            #expect(await books.closed == ["/polls"])
            let line = "{\"entry\":\"\(entry)\",\"status\":\"released\",\"timestamp\":\"2026-03-30T07:15:00Z\"}"
            let results = try await books.send([
                await books.mutation("patch", entry, "{\"status\":\"released\",\"backendId\":\"7\"}", in: realm),
                await books.mutation("put", UUID(), line, kind: "TimeEntryStatus", in: realm),
                await books.mutation("put", UUID(), "{\"entry\":\"x\"}", kind: "TimeEntryStatus", in: realm),
                await books.mutation("patch", entry, "{\"state\":\"released\"}", in: realm),
                await books.mutation("put", UUID(), "{}", kind: "TimeEntry", in: "/common"),
                await books.mutation("put", UUID(), "{}", kind: "Realms", in: "/polls"),
            ]).results
            #expect(
                results.map { $0.split(separator: " ")[0] } == [
                    "accepted", "accepted", "invalid-field", "unknown-field", "kind-not-allowed",
                    "realm-not-permitted",
                ])
            try await ana.sync()
            #expect(await ana.shown(realm).count == 2)
            #expect(
                try fixture.stored(realm)["TimeEntry/\(entry.uuidString.lowercased())"]?.contains("\"backendId\":\"7\"")
                    == true)
            // It puts an object whole, also where a tombstone is.
            _ = try await books.send([await books.mutation("delete", entry, in: realm)])
            let again = try await books.send([
                await books.mutation("put", entry, "{\"status\":\"approved\"}", in: realm)
            ])
            #expect(again.results[0].hasPrefix("accepted"))
            #expect(
                try fixture.stored(realm)["TimeEntry/\(entry.uuidString.lowercased())"] == "{\"status\":\"approved\"}")
            // It is told which realms there are.
            #expect(try await status(fixture, books.token).body.contains("{\"realm\":\"\(realm)\","))
        }
    }

    @Test func aRemovedIntegrationIsShutOut() async throws {
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try addKey(fixture))
            let following = Task { try await books.follow(naming: ["/users"]) }
            try await books.wait("live") { $0.checkpointCount == 1 }
            try fixture.withDatabase { connection in _ = try connection.run("DELETE FROM access.integration") }
            let answer = try await books.send([await books.mutation("put", UUID(), "{}", kind: "Realms", in: "/users")])
            #expect(answer.status == 401 && answer.problem == "invalid-token")
            // Within seconds the stream ends too.
            _ = await following.result
            #expect(try await status(fixture, books.token).status == 401)
            #expect(try await status(fixture, IntegrationKey.make()).status == 401)
            #expect(try await status(fixture, IntegrationKey.prefix).status == 401)
        }
    }

    /// What was removed while its write was decided misses under the counter's lock.
    @Test func aRemovalMeanwhileIsSeenByTheWrite() async throws {
        try await withGateway { fixture in
            _ = try addKey(fixture)
            let isMissed = try fixture.withDatabase { connection in
                let id: Int32 = try connection.run("SELECT id FROM access.integration")[0].value(0)
                let caller = Caller(environment: fixture.environment, id: -id, identity: .integration(name: "books"))
                let fields = Array("{\"userId\":\"a\",\"path\":\"/users/a\"}".utf8)
                let request = MutationRequest(
                    caller: caller, address: "", clientID: UUID(), traceparent: nil,
                    mutations: [
                        SubmittedMutation(
                            sequence: 1,
                            intent: .change(
                                .users, Mutation(operation: .put, kind: .realms, id: UUID(), fields: fields)))
                    ])
                let store = MutationStore(environment: fixture.environment, answersKeptMax: 10)
                let numbers = RealmNumbers()
                let realms = try numbers.numbers(of: [.common, .users], in: fixture.environment, on: &connection)
                var loaded = try store.load([request], realms: realms, on: &connection)
                loaded.access = [caller: try AccessReader(caller, numbers, on: &connection).read(on: &connection)]
                let plan = MutationPlan([request], loaded)
                try connection.run("DELETE FROM access.integration")
                let work = MutationWork(requests: [request], plan: plan, loaded: loaded, realms: realms)
                let outcome = try work.batch(store).commit(on: &connection)
                return !outcome.missed.isEmpty && outcome.positions.isEmpty
            }
            #expect(isMissed)
        }
    }

    @Test func clientCredentialsLetAnIntegrationIn() async throws {
        try await withGateway { fixture in
            try fixture.withDatabase { connection in
                _ = try connection.run(
                    """
                    INSERT INTO access.integration (environment_id, name, client_id)
                    VALUES (1, 'erp', 'erp-client'), (1, 'legacy', 'service-7')
                    """)
            }
            // The gateway reads who is let in every two seconds.
            let token = try await fixture.keys.clientToken("erp-client", subject: "service-9")
            let deadline = ContinuousClock.now + .seconds(20)
            while try await status(fixture, token).status != 200 {
                try #require(ContinuousClock.now < deadline)
                try await Task.sleep(for: .milliseconds(50))
            }
            let bySubject = try await fixture.keys.clientToken(nil, subject: "service-7")
            #expect(try await status(fixture, bySubject).status == 200)
            // The subject does not count beside a client id, and a person is a person whatever app they use.
            let otherClient = try await fixture.keys.clientToken("other", subject: "service-7")
            #expect(try await status(fixture, otherClient).status == 401)
            let person = try await fixture.keys.clientToken(
                "erp-client", subject: "ana", email: "ana@example.com")
            let realms = try await status(fixture, person)
            #expect(realms.status == 200 && realms.body.contains("/users/ana@example.com"))
            let caller = GatewayDevice(fixture, bearer: person)
            let body = "{\"realms\":{\"/users\":null}}"
            let sync = Answer(try await fixture.client.send(caller.request("POST", "/v1/sync", body)))
            #expect(sync.body.contains("{\"closed\":{\"realm\":\"/users\"}}"))
        }
    }
}
