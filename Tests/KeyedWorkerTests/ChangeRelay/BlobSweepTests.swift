import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay

/// Removal and retention of images, with a real database.
@Suite(.ownThreads) struct BlobSweepTests {
    private static let keep = Duration.seconds(7 * 86_400)

    /// Waiting statements do not time out.
    private static let limits = {
        var limits = Limits()
        limits.idleInTransactionMax = .seconds(600)
        limits.lockMax = .seconds(600)
        limits.statementMax = .seconds(600)
        return limits
    }()

    struct Endless: Error {}

    /// Runs a sweep to its end, and returns the number of removed blobs.
    private static func runSweep(_ connection: inout Connection) throws -> Int {
        var sweep = BlobSweep(keep: keep)
        var count = 0
        for _ in 0..<1_000 {
            let result = try sweep.step(on: &connection)
            count += result.removedCount
            if result.isLast { return count }
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

    @Test func oldUnreferencedImagesAreRemoved() throws {
        var acme = try TestEnvironment()
        let (old, young, named) = ((0..<45).map { _ in UUID() }, UUID(), UUID())
        try Self.add(old + [named], days: 8, in: acme.id.rawValue, &acme.connection)
        try Self.add([young], days: 6, in: acme.id.rawValue, &acme.connection)
        try acme.put([(UUID(), #"{"name": "t", "image": "\#(named.text)"}"#)], .team, into: .common)
        // While the environment is being imported, references to the images may still follow.
        try acme.connection.run("UPDATE realm.environment SET generation = 0")
        #expect(try Self.runSweep(&acme.connection) == 0)
        try acme.connection.run("UPDATE realm.environment SET generation = 2")
        #expect(try Self.runSweep(&acme.connection) == 45)
        #expect(try Self.left(&acme.connection) == [young, named])
    }

    /// References in one environment do not affect another's blob with the same id.
    @Test func environmentsAreIndependent() throws {
        var acme = try TestEnvironment()
        let other = try EnvironmentRows(name: "other").insert(on: &acme.connection)
        let id = UUID()
        for environment in [acme.id, other] {
            try Self.add([id, UUID()], days: 8, in: environment.rawValue, &acme.connection)
        }
        try acme.put([(UUID(), #"{"name": "t", "image": "\#(id.text)"}"#)], .team, into: .common)
        #expect(try Self.runSweep(&acme.connection) == 3)
        let left = try acme.connection.run("SELECT environment_id, id FROM blob.content").decode(Int32.self, UUID.self)
        #expect(left.map(\.0) == [acme.id.rawValue] && left.map(\.1) == [id])
    }

    /// A transaction that refers to an image commits while the image is about to be removed.
    @Test func imageReferencedMeanwhileStays() throws {
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
            return try Self.blockedSweep(conninfo, &acme.connection)
        }
        try sweeping.wait()
        #expect(try Self.left(&acme.connection) == [id])
    }

    /// Starts a sweep that removes nothing, and waits until it waits for a lock.
    private static func blockedSweep(
        _ conninfo: String, _ connection: inout Connection
    ) throws -> BackgroundThread {
        let sweeping = BackgroundThread {
            var connection = try Connection(conninfo, limits: limits)
            #expect(try runSweep(&connection) == 0)
        }
        while try !sweeping.isDone && waiting(&connection) == 0 { try connection.run("SELECT pg_sleep(0.01)") }
        return sweeping
    }

    /// A device sends the image again while it is about to be removed.
    @Test func imageResentMeanwhileStays() throws {
        var acme = try TestEnvironment()
        let id = UUID()
        try Self.add([id], days: 8, in: acme.id.rawValue, &acme.connection)
        let conninfo = acme.conninfo
        var sender = try Connection(conninfo, limits: Self.limits)
        let sweeping = try sender.transaction { transaction in
            try transaction.run("UPDATE blob.content SET uploaded_at = now()")
            return try Self.blockedSweep(conninfo, &acme.connection)
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

    /// While an upgrade waits for `fieldpost migrate --finish`, the other sweeps continue.
    @Test func missingTablesAreSkipped() throws {
        var acme = try TestEnvironment()
        try acme.connection.runScript("DROP SCHEMA blob CASCADE")
        #expect(try Self.runSweep(&acme.connection) == 0)
    }
}
