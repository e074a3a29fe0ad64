import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LagMonitor

@Suite(.ownThreads) struct ProbeRouteTests {
    /// As `share-fan-out` does.
    private func copy(_ route: ProbeRoute, on connection: inout Connection) throws {
        let objects = try RealmObject.byKey(try connection.run(RealmObject.load([route.note], in: route.environment)))
        var batch = WriteBatch(environment: route.environment)
        batch.put(route.copy, try #require(objects[route.note]?.fields), decision: 0)
        #expect(try batch.commit(on: &connection).conflicts.isEmpty)
    }

    @Test func probeSharesItsNoteOnceAndCounts() throws {
        var environment = try TestEnvironment()
        let created = try environment.connection.makeProbeRoute(through: "acme")
        let route = try #require(created)
        let first = try environment.connection.sendProbe(route)
        #expect(first == 1)
        #expect(try environment.connection.receivedProbe(route) == 0)
        try copy(route, on: &environment.connection)
        #expect(try environment.connection.receivedProbe(route) == 1)
        let objects = try RealmObject.byKey(
            try environment.connection.run(RealmObject.load([route.note, route.link], in: route.environment)))
        let link = try #require(objects[route.link])

        // Another monitor, or this one after a restart.
        var other = try Connection(environment.conninfo)
        let again = try #require(try other.makeProbeRoute(through: "acme"))
        #expect(again.note == route.note && again.copy == route.copy && again.environment == route.environment)
        #expect(try other.sendProbe(again) == 2)
        #expect(try environment.connection.sendProbe(route) == 3)
        try copy(route, on: &environment.connection)
        // A wait for the second one also ends with a later one.
        #expect(try other.receivedProbe(again) == 3)
        let after = try RealmObject.byKey(try other.run(RealmObject.load([route.link], in: route.environment)))
        #expect(after[route.link]?.position == link.position)
    }

    @Test func probeWithoutEnvironmentHasNoRoute() throws {
        var environment = try TestEnvironment()
        let route = try environment.connection.makeProbeRoute(through: "nobody")
        #expect(route == nil)
    }
}
