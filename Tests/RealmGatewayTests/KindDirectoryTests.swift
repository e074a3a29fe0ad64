import Access
import Essentials
import FoundationEssentials
import HTTPServer
import Identity
import KindSchema
import Logging
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import RealmGateway

/// The stored kinds of many environments: one copy of each file, and a limited size.
@Suite(.ownThreads) struct KindDirectoryTests {
    private func file(_ kind: String) -> String {
        #"{"kinds":{"\#(kind)":{"realms":["user"],"properties":{"a":{"type":"string"}}}}}"#
    }

    private func apply(_ file: String, to environment: EnvironmentID, on connection: inout Connection) throws {
        let application = try KindApplication(try SchemaValue(Array(file.utf8)), to: environment, on: &connection)
        _ = try application.commit(by: "test", on: &connection) { _ in [] }
    }

    @Test func filesAreSharedAndTheLeastRecentlyUsedIsEvicted() async throws {
        let database = try makeFoundationDatabase()
        let environments = (1...4).map { EnvironmentID(rawValue: $0) }
        var connection = try Connection(database)
        for environment in environments {
            let number = environment.rawValue
            try connection.run("INSERT INTO realm.environment (id, name) VALUES (\(number), \("test-\(number)"))")
        }
        // The first two have the same file, the second as its version 2.
        try apply(file("Zero"), to: environments[1], on: &connection)
        for (environment, name) in zip(environments, ["One", "One", "Two", "Six"]) {
            try apply(file(name), to: environment, on: &connection)
        }
        let pool = try Pool(database, size: 2)
        let directory = KindDirectory(pool: pool, fileBytesMax: file("One").utf8.count * 2)
        let first = try await directory.load(environments[0])
        let second = try await directory.load(environments[1])
        #expect(first.version == 1 && second.version == 2)
        #expect(first.ownKinds.map { $0.rawValue } == ["One"] && second.ownKinds == first.ownKinds)
        _ = try await directory.load(environments[2])
        #expect(directory.loaded(in: environments[0]).version == 1)
        // The third environment's file is the least recently used one.
        #expect(try await directory.load(environments[3]).kind(named: "Six") != nil)
        #expect(directory.loaded(in: environments[2]).version == -1)
        #expect(directory.loaded(in: environments[1]).version == 2)
        #expect(try await directory.current(in: environments[2]).kind(named: "Two") != nil)
    }

    /// The first mutation after an eviction does not cost a second transaction.
    @Test func mutationsOfOwnKindsWithoutALoadedVersionAreDecidedOnce() async throws {
        let database = try makeFoundationDatabase()
        let environment = EnvironmentID(rawValue: 1)
        var connection = try Connection(database)
        try connection.run("INSERT INTO realm.environment (id, name) VALUES (1, 'test')")
        try apply(file("One"), to: environment, on: &connection)
        let id = try connection.run(
            "INSERT INTO access.integration (environment_id, name, client_id) VALUES (1, 'books', 'b') RETURNING id"
        )[0].decode(Int32.self)
        let (pool, logger) = (try Pool(database, size: 2), Logger(label: "test"))
        let authentication = Authentication(
            verifier: TokenVerifier(environments: { [] }, fetch: { _ in [] }),
            directory: EnvironmentDirectory(pool: pool, logger: logger), pool: pool, clients: ClientAddress(),
            logger: logger)
        let commits = try CommitPools(database, GatewayLimits())
        let transactions = Mutex(0)
        let route = MutationsRoute(
            authentication: authentication, limits: GatewayLimits(), kinds: KindDirectory(pool: pool)
        ) { environment in
            let store = MutationStore(environment: environment, storedResultCountMax: 100)
            return GroupCommit(MutationBatch(store: store, numbers: RealmNumbers()), pools: commits, waitingMax: 10) {
                transactions.withLock { $0 += 1 }
            }
        }
        let login = Login(
            caller: .integration(.init(environment: environment, id: id, name: "books")), expires: .max, address: "")
        let body = #"""
            {"clientId":"\#(UUID().text)","mutations":[{"sequence":1,"realm":"/users/ana@example.com","op":"put",
            "kind":"One","id":"\#(UUID().text)","fields":{"a":"text"}}]}
            """#
        _ = try await route.respond(to: login, number: "sequence") { catalogue in
            try MutationRequest(Array(body.utf8), by: login, traceparent: nil, countMax: 1, catalogue: catalogue)
        }
        #expect(transactions.withLock(\.self) == 1)
        let count = try connection.run("SELECT count(*) FROM store.object WHERE kind >= 1000")[0].decode(Int64.self)
        #expect(count == 1)
    }
}
