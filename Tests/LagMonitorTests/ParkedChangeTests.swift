import AdminQueries
import Audit
import Foundation
import Model
import Postgres
import TestSupport
import Testing

/// Acts on parked keys, and their records.
@Suite(.ownThreads) struct ParkedChangeTests {
    private let conninfo: String
    private let administrator = Administrator(actor: "test:ana", address: "here")

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name) VALUES (1, 'acme');
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            SELECT 'entry-submitter', e, k, 'entry.events', 0, k, 0, 'closed', true, false, 20, now()
            FROM (VALUES (1, 'a'), (1, 'b'), (1, 'c'), (0, 'entry.events/0/1')) AS v(e, k);
            """)
    }

    private func seen(_ connection: inout Connection) throws -> [ParkedStore.Seen] {
        try ParkedStore.load(ParkedStore.Selection(), countMax: 10, on: &connection).map { .init($0) }
    }

    private func told(_ connection: inout Connection) throws -> [String] {
        try connection.run("SELECT action || ' ' || subject FROM access.audit ORDER BY 1").decode(String.self)
    }

    /// The audit log tells what was done, and nothing of keys that were not there any more.
    @Test func onlyWhatWasChangedIsRecorded() throws {
        var connection = try Connection(conninfo)
        let keys = try seen(&connection)
        try connection.run("DELETE FROM pipeline.parked WHERE key = 'a'")
        try connection.run("UPDATE pipeline.parked SET reason = 'another' WHERE key = 'b'")
        let retried = try ParkedStore.retry(keys, by: administrator, on: &connection)
        #expect(retried == ParkedStore.Changed(count: 1, otherCount: 1))
        #expect(try told(&connection) == ["parked.retried c"])
        // The same act of somebody who saw the same.
        #expect(
            try ParkedStore.discard(keys, by: administrator, on: &connection)
                == ParkedStore.Changed(count: 1, otherCount: 2))
        #expect(try told(&connection) == ["parked.discarded entry.events/0/1", "parked.retried c"])
        #expect(try ParkedStore.discard(seen(&connection), by: administrator, on: &connection).count == 2)
        #expect(
            try ParkedStore.discard(keys, by: administrator, on: &connection) == ParkedStore.Changed(),
            "they are gone")
        #expect(try told(&connection).count == 4)
    }

    /// There is nothing to decide about: it would never be dead again, and never be handled.
    @Test func whatCouldNotBeReadIsNotTriedAgain() throws {
        var connection = try Connection(conninfo)
        let unreadable = try seen(&connection).filter { $0.name.environmentID == 0 }
        #expect(unreadable.count == 1)
        #expect(try ParkedStore.retry(unreadable, by: administrator, on: &connection).count == 0)
        let isDead = try connection.run("SELECT is_dead FROM pipeline.parked WHERE environment_id = 0")
        #expect(try isDead[0].decode(Bool.self))
        #expect(try told(&connection).isEmpty)
    }
}
