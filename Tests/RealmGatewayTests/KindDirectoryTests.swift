import KindSchema
import Model
import ObjectStore
import Postgres
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
}
