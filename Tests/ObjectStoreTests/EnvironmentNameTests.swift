import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import Telemetry

@Suite(.ownThreads) struct EnvironmentNameTests {
    @Test func namesOfEnvironmentsAreLoaded() throws {
        var environment = try TestEnvironment()
        let names = EnvironmentNames()
        try EnvironmentNameLoader.load(into: names, environment.conninfo)
        #expect(names.name(of: "\(environment.id)") == "acme")
        let rows = try environment.connection.run("INSERT INTO realm.environment (name) VALUES ('books') RETURNING id")
        let books = try rows[0].decode(Int32.self)
        #expect(names.name(of: "\(books)") == nil && names.isIncomplete)
        try EnvironmentNameLoader.load(into: names, environment.conninfo)
        #expect(names.name(of: "\(books)") == "books" && !names.isIncomplete)
    }
}
