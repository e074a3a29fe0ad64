import Essentials
import Foundation
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

@testable import ObjectStore

/// A reader without work is notified of the next position, and only then.
@Suite(.ownThreads) struct AwaitedPositionsTests {
    @Test func nextWriteNotifiesOnce() throws {
        try withReader { reader, writer, write in
            // The first change of an environment is notified.
            try write(&writer)
            #expect(try reader.isNotified())
            try write(&writer)
            #expect(try !reader.isNotified(within: .zero), "it is not awaited")
            #expect(try reader.request() == 0)
            #expect(try !reader.isNotified(within: .zero))
            try write(&writer)
            #expect(try reader.isNotified())
            try write(&writer)
            #expect(try !reader.isNotified(within: .zero), "the request is answered")
            #expect(try reader.request() == 0)
            try writer.run(Lineage.restore)
            #expect(try reader.isNotified(), "a new generation")
        }
    }

    /// A reader's request does not wait for a writer: the reader polls again.
    @Test func counterHeldByAWriterIsReported() throws {
        try withReader { reader, writer, write in
            try write(&writer)
            #expect(try reader.isNotified())
            try writer.transaction { transaction in
                try transaction.run("SELECT FROM realm.environment FOR UPDATE")
                #expect(try reader.request() == 1)
            }
            #expect(try reader.request() == 0)
            try write(&writer)
            #expect(try reader.isNotified())
        }
    }

    /// A writer that waits for the counter notifies: it sees the request that is committed meanwhile.
    @Test func requestIsSeenByWaitingWriters() throws {
        try withReader { reader, writer, write in
            try write(&writer)
            #expect(try reader.isNotified())
            let conninfo = reader.conninfo
            var other = try Connection(conninfo)
            let writing = try other.transaction { transaction in
                try transaction.run(AwaitedPositions.request(where: "true"))
                let writing = BackgroundThread {
                    var connection = try Connection(conninfo)
                    try connection.run("UPDATE realm.environment SET position = position + 1")
                }
                try waitUntil("the writer waits for the counter") {
                    let waiting: Statement = """
                        SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND wait_event_type = 'Lock'
                        """
                    return try writer.run(waiting)[0].decode(Int64.self) > 0
                }
                return writing
            }
            try writing.wait()
            #expect(try reader.isNotified())
        }
    }

    /// Another reader has requested: the counter is not locked. A change after the poll is notified nevertheless.
    @Test func newSessionIsNotifiedOfAnEarlierRequest() throws {
        try withReader { reader, writer, write in
            #expect(try reader.request() == 0)
            var second = Reader(
                conninfo: reader.conninfo, connection: try Connection(reader.conninfo), wakeup: try Wakeup())
            try second.connection.run(AwaitedPositions.listen)
            #expect(try second.request() == 0)
            try write(&writer)
            #expect(try second.isNotified())
            #expect(try reader.isNotified())
        }
    }

    /// The request is not refused, which would end the relay.
    @Test func writeBlockedEnvironmentIsAwaited() throws {
        try withReader { reader, writer, write in
            try write(&writer)
            #expect(try reader.isNotified())
            try writer.run("SELECT realm.hold(id, 'realm.environment'::regclass) FROM realm.environment")
            #expect(throws: PostgresError.self) { try write(&writer) }
            #expect(throws: PostgresError.self) {
                _ = try writer.run("UPDATE realm.environment SET is_awaited = true, position = position + 1")
            }
            #expect(try reader.request() == 0)
            try writer.run("SELECT realm.let_go(id, 'realm.environment'::regclass) FROM realm.environment")
            try write(&writer)
            #expect(try reader.isNotified())
        }
    }

    @Test func waitEndsBySignal() throws {
        try withReader { reader, _, _ in
            reader.wakeup.signal()
            let isNotified = try reader.isNotified(within: .seconds(3_600))
            #expect(!isNotified)
        }
    }

    @Test func lostConnectionIsAnError() throws {
        try withReader { reader, writer, _ in
            #expect(try reader.request() == 0)
            try writer.run(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()
                """)
            // The server's message may arrive before the end of the connection.
            #expect(throws: PostgresError.self) {
                _ = try reader.isNotified()
                _ = try reader.request()
            }
            #expect(try reader.request() == 0)
        }
    }
}

private struct Reader: ~Copyable {
    let conninfo: String
    var connection: Connection
    let wakeup: Wakeup

    /// - Returns: The number of environments without a request.
    mutating func request() throws -> Int64 {
        try connection.run(AwaitedPositions.request(where: "true")).last?[0].decode(Int64.self) ?? -1
    }

    mutating func isNotified(within waitMax: Duration = patienceMax) throws -> Bool {
        // PostgreSQL sends the notifications of a session before its next response.
        if waitMax == .zero { try connection.run("SELECT") }
        return try connection.waitForNotification(atMost: waitMax, or: wakeup)
    }
}

/// Runs `body` with a reader, a writer's connection, and a function that writes an object.
private func withReader(
    _ body: (inout Reader, inout Connection, (inout Connection) throws -> Void) throws -> Void
) throws {
    try withRealm { writer, environment, realm, conninfo in
        var reader = Reader(conninfo: conninfo, connection: try Connection(conninfo), wakeup: try Wakeup())
        try reader.connection.run(AwaitedPositions.listen)
        try body(&reader, &writer) { connection in
            var batch = WriteBatch(environment: environment)
            batch.put(
                ObjectKey(realm: realm, kind: .timeEntry, id: UUID()), try CanonicalJSON("{}"), decision: 0)
            _ = try batch.commit(on: &connection)
        }
    }
}
