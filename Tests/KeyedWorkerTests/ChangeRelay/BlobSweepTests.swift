import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay

/// Which images are removed, and which stay, with a real database.
@Suite(.ownThreads) struct BlobSweepTests {
    private static let keep = Duration.seconds(7 * 86_400)

    /// What waits does not give up.
    private static let limits = {
        var limits = Limits()
        limits.idleInTransactionMax = .seconds(600)
        limits.lockMax = .seconds(600)
        limits.statementMax = .seconds(600)
        return limits
    }()

    struct Endless: Error {}

    /// Runs a sweep to the end of its round, and says how much it removed.
    private static func round(_ connection: inout Connection) throws -> Int {
        var sweep = BlobSweep(keep: keep)
        var count = 0
        for _ in 0..<1_000 {
            let part = try sweep.step(on: &connection)
            count += part.removedCount
            if part.isLast { return count }
        }
        throw Endless()
    }

    private static func add(_ ids: [UUID], days: Int, in environment: Int32, _ connection: inout Connection) throws {
        try connection.run(
            """
            INSERT INTO blob.content (environment_id, id, uploader, type, digest, bytes, uploaded_at)
            SELECT \(environment), id, 1, 'image/png', '', 'x', now() - make_interval(days => \(Int32(days)))
            FROM unnest(\(ids)) AS b(id)
            """)
    }

    private static func left(_ connection: inout Connection) throws -> Set<UUID> {
        Set(try connection.run("SELECT id FROM blob.content").decode(UUID.self))
    }

    @Test func oldImagesThatNothingNamesGo() throws {
        var acme = try TestEnvironment()
        let (old, young, named) = ((0..<45).map { _ in UUID() }, UUID(), UUID())
        try Self.add(old + [named], days: 8, in: acme.id.rawValue, &acme.connection)
        try Self.add([young], days: 6, in: acme.id.rawValue, &acme.connection)
        try acme.put([(UUID(), #"{"name": "t", "image": "\#(named.text)"}"#)], .team, into: .common)
        // While it arrives from another installation, what names them may be still to come.
        try acme.connection.run("UPDATE realm.environment SET generation = 0")
        #expect(try Self.round(&acme.connection) == 0)
        try acme.connection.run("UPDATE realm.environment SET generation = 2")
        #expect(try Self.round(&acme.connection) == 45)
        #expect(try Self.left(&acme.connection) == [young, named])
    }

    /// What is named in one environment is nothing to another's blob of the same id.
    @Test func environmentsAreApart() throws {
        var acme = try TestEnvironment()
        let other = try EnvironmentRows(name: "other").insert(on: &acme.connection)
        let id = UUID()
        for environment in [acme.id, other] {
            try Self.add([id, UUID()], days: 8, in: environment.rawValue, &acme.connection)
        }
        try acme.put([(UUID(), #"{"name": "t", "image": "\#(id.text)"}"#)], .team, into: .common)
        #expect(try Self.round(&acme.connection) == 3)
        let left = try acme.connection.run("SELECT environment_id, id FROM blob.content").decode(Int32.self, UUID.self)
        #expect(left.map(\.0) == [acme.id.rawValue] && left.map(\.1) == [id])
    }

    /// A transaction that names an image commits while the image is about to be removed.
    @Test func whatIsNamedMeanwhileStays() throws {
        var acme = try TestEnvironment()
        let id = UUID()
        try Self.add([id], days: 8, in: acme.id.rawValue, &acme.connection)
        let realm = try acme.realm(.common)
        let (environment, conninfo) = (acme.id.rawValue, acme.conninfo)
        let fields = #"{"name": "t", "image": "\#(id.text)"}"#
        var writer = try Connection(conninfo, limits: Self.limits)
        let sweeping = try writer.transaction { transaction in
            try transaction.run("UPDATE realm.environment SET position = position + 1 WHERE id = \(environment)")
            try transaction.run(
                """
                INSERT INTO store.object
                    (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
                VALUES (\(environment), \(realm), \(Kind.team), \(UUID()), 1, 0, 0, false,
                    \(fields))
                """)
            return try Self.sweepThatWaits(conninfo, &acme.connection)
        }
        try sweeping.wait()
        #expect(try Self.left(&acme.connection) == [id])
    }

    /// A round that removes nothing, once it waits for what somebody holds.
    private static func sweepThatWaits(
        _ conninfo: String, _ connection: inout Connection
    ) throws -> BackgroundThread {
        let sweeping = BackgroundThread {
            var connection = try Connection(conninfo, limits: limits)
            #expect(try round(&connection) == 0)
        }
        while try !sweeping.isDone && waiting(&connection) == 0 { try connection.run("SELECT pg_sleep(0.01)") }
        return sweeping
    }

    /// A device sends it once more, while it is about to be removed.
    @Test func whatIsSentAgainMeanwhileStays() throws {
        var acme = try TestEnvironment()
        let id = UUID()
        try Self.add([id], days: 8, in: acme.id.rawValue, &acme.connection)
        let conninfo = acme.conninfo
        var sender = try Connection(conninfo, limits: Self.limits)
        let sweeping = try sender.transaction { transaction in
            try transaction.run("UPDATE blob.content SET uploaded_at = now()")
            return try Self.sweepThatWaits(conninfo, &acme.connection)
        }
        try sweeping.wait()
        #expect(try Self.left(&acme.connection) == [id])
    }

    private static func waiting(_ connection: inout Connection) throws -> Int {
        try connection.run(
            """
            SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
        ).count
    }

    /// While an upgrade waits for `fieldpost migrate --finish`, the other sweeps go on.
    @Test func withoutItsTablesThereIsNothingToDo() throws {
        var acme = try TestEnvironment()
        try acme.connection.runScript("DROP SCHEMA blob CASCADE")
        #expect(try Self.round(&acme.connection) == 0)
    }
}
