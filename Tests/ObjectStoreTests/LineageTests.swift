import Foundation
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

@testable import ObjectStore

/// A changed timeline is detected, and restored data is separated from cached state.
@Suite(.ownThreads) struct LineageTests {
    /// A standby that lacks the last transactions is promoted: sessions are rejected until the restore is accepted.
    @Test func promotedStandbyWithLossIsRejected() throws {
        let folder = try ClusterFolder("lineage")
        defer { folder.remove() }
        let primary = try ClusterServer(in: folder)
        try primary.start()
        defer { primary.kill9() }
        let before = try primary.makeDatabase("fieldpost")
        var connection = try Connection(before)
        for text in try schema() { try connection.runScript(text) }
        try connection.run("INSERT INTO realm.environment (name, position) VALUES ('acme', 10)")
        let standby = try primary.makeStandby()
        defer { standby.kill9() }
        let after = standby.conninfo("fieldpost")
        #expect(throws: PostgresError.self, "a standby is rejected") {
            _ = try Connection(after, check: Lineage.check)
        }

        var worker = try Connection(primary.conninfo("fieldpost", or: standby), check: Lineage.check)
        try standby.cutOff()
        try worker.run("UPDATE realm.environment SET position = 700")
        primary.kill9()
        try standby.promote()

        #expect(throws: PostgresError.self, "the connection is lost") { try worker.run("SELECT 1") }
        for _ in 0..<2 {
            let refused = #expect(throws: PostgresError.self) { try worker.run("SELECT 1") }
            #expect(refused?.isTimelineChange == true)
            #expect(refused?.description.contains("run: fieldpost restore") == true)
        }
        var administrator = try Connection(after)
        let behind: Int64 = try administrator.run("SELECT position FROM realm.environment")[0].value(0)
        #expect(behind == 10, "the standby is not behind")
        #expect(try administrator.run(Lineage.isUnchanged)[0].value(0) == false)
        try administrator.run(Lineage.restore + [Lineage.accept])
        let row = try administrator.run(EnvironmentCounter.load(EnvironmentID(rawValue: 1)))[0]
        let counter = try EnvironmentCounter(row)
        #expect(counter.position > 700 && counter.generation > 1)
        #expect(!Cursor(generation: 1, start: 700, position: 700).isValid(for: counter))
        // A process with cached state must exit; a new one works.
        let remembering = #expect(throws: PostgresError.self) { try worker.run("SELECT 1") }
        #expect(remembering?.isTimelineChange == true)
        var fresh = try Connection(after, check: Lineage.check)
        #expect(try fresh.run("SELECT 1").count == 1)
    }

    /// A dump copies the tables, including the stored lineage, to another database.
    @Test func databaseRestoredFromDumpIsRejected() throws {
        try withRealm { connection, _, _, conninfo in
            _ = try Connection(conninfo, check: Lineage.check)
            // Like a dump: the rows are the same, the table is re-created.
            try connection.runScript(
                """
                CREATE TABLE realm.copy (LIKE realm.lineage INCLUDING ALL);
                INSERT INTO realm.copy SELECT * FROM realm.lineage;
                DROP FUNCTION realm.lineage_check;
                DROP TABLE realm.lineage;
                ALTER TABLE realm.copy RENAME TO lineage;
                """)
            let check = try schema().lazy.compactMap { $0.functionText("lineage_check") }.first
            try connection.runScript(try #require(check))
            let refused = #expect(throws: PostgresError.self) { _ = try Connection(conninfo, check: Lineage.check) }
            #expect(refused?.isTimelineChange == true)
        }
    }

    /// Independent of the number of restores and of the positions allocated since the backup.
    @Test func restoredPositionsExceedAllAllocatedOnes() throws {
        try withRealm { connection, environment, _, _ in
            let busiest = Int64(Date().timeIntervalSince1970 - 3_600) * Lineage.positionsPerSecondMax
            var generations: Set<Int64> = []
            for (generation, position) in [(Int64(1), Int64(5)), (1, busiest), (Int64(1) << 40, Int64(1) << 52)] {
                try connection.run("UPDATE realm.environment SET generation = \(generation), position = \(position)")
                try connection.run(Lineage.restore)
                let counter = try EnvironmentCounter(try connection.run(EnvironmentCounter.load(environment))[0])
                #expect(counter.position > max(busiest, position) && counter.generation > generation)
                #expect(counter.position <= Int64(1) << 53)
                generations.insert(counter.generation)
            }
            #expect(generations.count >= 2)
            let next: Int32 = try connection.run("INSERT INTO realm.environment (name) VALUES ('new') RETURNING id")[0]
                .value(0)
            #expect(next > environment.rawValue + 1_000)
        }
    }

    /// A clock that was set back does not lead to an epoch that messages already have.
    @Test func restoreStartsNewEpoch() throws {
        try withRealm { connection, environment, _, _ in
            let epoch = Int64(1) << 40
            try connection.run(
                """
                INSERT INTO realm.relay (environment_id, generation, epoch, published_epoch, position)
                VALUES (\(environment.rawValue), 1, \(epoch), \(epoch), 0)
                ON CONFLICT (environment_id) DO UPDATE SET epoch = excluded.epoch
                """)
            try connection.run(Lineage.restore)
            #expect(try connection.run("SELECT epoch FROM realm.relay")[0].decode(Int64.self) > epoch)
        }
    }

    /// The check requires only read access to the table.
    @Test func readOnlyRoleCanBeChecked() throws {
        try withRealm { connection, _, _, conninfo in
            let role = "reader_\(UUID().uuidString.prefix(8).lowercased())"
            try connection.runScript(
                """
                CREATE ROLE \(role) LOGIN;
                GRANT USAGE ON SCHEMA realm TO \(role);
                GRANT SELECT ON realm.lineage TO \(role);
                """)
            var reader = try Connection(
                conninfo.replacing("user=\(ClusterServer.user)", with: "user=\(role)"), check: Lineage.check)
            #expect(try reader.run("SELECT current_user::text")[0].value(0) == role)
        }
    }
}

extension String {
    /// The statement of a schema file that creates a function of `realm`.
    fileprivate func functionText(_ name: String) -> String? {
        guard let start = range(of: "CREATE FUNCTION realm.\(name)("),
            let end = range(of: "\n$$;", range: start.lowerBound..<endIndex)
        else { return nil }
        return String(self[start.lowerBound..<end.upperBound])
    }
}
