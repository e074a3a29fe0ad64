import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LagMonitor

@Suite(.ownThreads) struct ProbeWayTests {
    /// As `share-fan-out` does.
    private func copy(_ way: ProbeWay, on connection: inout Connection) throws {
        let found = try RealmObject.byKey(try connection.run(RealmObject.load([way.note], in: way.environment)))
        var batch = WriteBatch(environment: way.environment)
        batch.put(way.copy, try #require(found[way.note]?.fields), decision: 0)
        #expect(try batch.commit(on: &connection).missed.isEmpty)
    }

    @Test func aNoteIsSharedOnceAndItsNumberGoesUp() throws {
        var environment = try TestEnvironment()
        let found = try environment.connection.makeProbeWay(through: "acme")
        let way = try #require(found)
        let first = try environment.connection.sendProbe(way)
        #expect(first == 1)
        #expect(try environment.connection.arrivedProbe(way) == 0)
        try copy(way, on: &environment.connection)
        #expect(try environment.connection.arrivedProbe(way) == 1)
        let objects = try RealmObject.byKey(
            try environment.connection.run(RealmObject.load([way.note, way.link], in: way.environment)))
        let link = try #require(objects[way.link])

        // Another monitor, or this one after a new start.
        var other = try Connection(environment.conninfo)
        let again = try #require(try other.makeProbeWay(through: "acme"))
        #expect(again.note == way.note && again.copy == way.copy && again.environment == way.environment)
        #expect(try other.sendProbe(again) == 2)
        #expect(try environment.connection.sendProbe(way) == 3)
        try copy(way, on: &environment.connection)
        // Whoever waits for the second one sees that a later one came.
        #expect(try other.arrivedProbe(again) == 3)
        let after = try RealmObject.byKey(try other.run(RealmObject.load([way.link], in: way.environment)))
        #expect(after[way.link]?.position == link.position)
    }

    @Test func withoutAnEnvironmentThereIsNoWay() throws {
        var environment = try TestEnvironment()
        let way = try environment.connection.makeProbeWay(through: "nobody")
        #expect(way == nil)
    }
}
