import AdminQueries
import Audit
import Foundation
import Model
import Postgres
import TestSupport
import Testing

/// Actions on deferred keys, and their audit records.
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

    private func seen(_ connection: inout Connection) throws -> [DeferredKeyStore.Seen] {
        try DeferredKeyStore.load(DeferredKeyStore.Selection(), countMax: 10, on: &connection).map { .init($0) }
    }

    private func auditRecords(_ connection: inout Connection) throws -> [String] {
        try connection.run("SELECT action || ' ' || subject FROM access.audit ORDER BY 1").decode(String.self)
    }

    /// The audit log contains what was changed, and nothing of keys that no longer exist.
    @Test func onlyChangedKeysAreAudited() throws {
        var connection = try Connection(conninfo)
        let keys = try seen(&connection)
        try connection.run("DELETE FROM pipeline.parked WHERE key = 'a'")
        try connection.run("UPDATE pipeline.parked SET reason = 'another' WHERE key = 'b'")
        let retried = try DeferredKeyStore.retry(keys, by: administrator, on: &connection)
        #expect(retried == DeferredKeyStore.Changed(count: 1, otherCount: 1))
        #expect(try auditRecords(&connection) == ["parked.retried c"])
        // The same action of a user with the same expected version.
        #expect(
            try DeferredKeyStore.discard(keys, by: administrator, on: &connection)
                == DeferredKeyStore.Changed(count: 1, otherCount: 2))
        #expect(try auditRecords(&connection) == ["parked.discarded entry.events/0/1", "parked.retried c"])
        #expect(try DeferredKeyStore.discard(seen(&connection), by: administrator, on: &connection).count == 2)
        #expect(
            try DeferredKeyStore.discard(keys, by: administrator, on: &connection) == DeferredKeyStore.Changed(),
            "they are gone")
        #expect(try auditRecords(&connection).count == 4)
    }

    /// An unreadable message has nothing to decide: a retry would never end.
    @Test func unreadableMessageIsNotRetried() throws {
        var connection = try Connection(conninfo)
        let unreadable = try seen(&connection).filter { $0.name.environmentID == 0 }
        #expect(unreadable.count == 1)
        #expect(try DeferredKeyStore.retry(unreadable, by: administrator, on: &connection).count == 0)
        let isDead = try connection.run("SELECT is_dead FROM pipeline.parked WHERE environment_id = 0")
        #expect(try isDead[0].decode(Bool.self))
        #expect(try auditRecords(&connection).isEmpty)
    }
}
