import Essentials
import Foundation
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Versions of a schema file whose command is killed, or that a restored database lacks: devices see no difference, and
/// are reset only by the restore.
@Suite(.ownThreads) struct OwnKindVersionTests {
    /// Returns a version of the file: each has one more field of the kind `Form`.
    private static func file(_ version: Int, and others: [String] = []) -> String {
        func kind(_ name: String, _ fields: [String]) -> String {
            let properties = fields.map { "\"\($0)\":{\"type\":\"integer\"}" }.joined(separator: ",")
            return #""\#(name)":{"realms":["user"],"properties":{\#(properties)},"#
                + #""permissions":[{"who":["owner"],"may":["create","change"]}]}"#
        }
        let kinds = [kind("Form", (1...version).map { "field\($0)" })] + others.map { kind($0, ["field1"]) }
        return "{\"kinds\":{\(kinds.joined(separator: ","))}}"
    }

    // MARK: A killed command

    /// A lock that the command waits for in its transaction.
    enum Moment: CaseIterable, Sendable {
        case atTheCounter, beforeNumbers, beforeTheVersion, beforeTheKinds, beforeTheAuditRecord, inTheCommit

        fileprivate var lock: Statement {
            switch self {
            case .atTheCounter: "LOCK TABLE realm.environment IN EXCLUSIVE MODE"
            case .beforeNumbers: "LOCK TABLE realm.kind IN EXCLUSIVE MODE"
            case .beforeTheVersion: "LOCK TABLE realm.kind_version IN EXCLUSIVE MODE"
            case .beforeTheKinds: "LOCK TABLE realm.own_kind IN EXCLUSIVE MODE"
            case .beforeTheAuditRecord: "LOCK TABLE access.audit IN EXCLUSIVE MODE"
            case .inTheCommit: "SELECT pg_advisory_xact_lock(1)"
            }
        }
    }

    @Test(arguments: Moment.allCases) func killedApplyHasAllEffectsOrNone(moment: Moment) async throws {
        try await withGateway { fixture in
            try fixture.apply(Self.file(1))
            let ana = try await fixture.device("ana@example.com")
            let (realm, id) = (await ana.realm, UUID())
            func send(_ op: String, _ id: UUID, _ fields: String, kind: String = "Form") async throws -> String {
                try await ana.send([await ana.mutation(op, id, fields, kind: kind)]).results[0]
            }
            #expect(try await send("put", id, #"{"field1":1}"#).hasPrefix("accepted"))
            let live = Task { try await ana.follow() }
            defer { live.cancel() }
            try await ana.wait("the object") { $0.shown(realm).keys.contains("Form/\(id.text)") }
            let (before, shown, resets) = (try fixture.kindRows(), await ana.shown(realm), await ana.resets)
            let next = Self.file(2, and: ["Late"])
            try fixture.killApply(next, at: moment)

            let isApplied = moment == .inTheCommit
            #expect(try (fixture.kindRows() != before) == isApplied)
            let expected = isApplied ? "accepted" : "unknown-field"
            #expect(try await send("patch", id, #"{"field2":2}"#).hasPrefix(expected))
            #expect(try await send("patch", id, #"{"field1":1}"#).hasPrefix("accepted"))
            let other = try await fixture.device("ana@example.com")
            try await other.sync()
            if !isApplied {
                #expect(await other.shown(realm) == shown)
                #expect(await ana.shown(realm) == shown)
            }

            let again = try fixture.applyFile(next)
            #expect(again.status == 0, "\(again.errors)")
            #expect(again.output.contains(isApplied ? "uses this file already" : "uses version 2"))
            #expect(
                try fixture.kindRows() == [
                    "1000 Form", "1001 Late", "own 1000", "own 1001", "version 1", "version 2", #"{"version": "2"}"#,
                ])
            let late = UUID()
            #expect(try await send("patch", id, #"{"field2":3}"#).hasPrefix("accepted"))
            #expect(try await send("put", late, #"{"field1":1}"#, kind: "Late").hasPrefix("accepted"))
            try await ana.wait("the new kind") { $0.shown(realm).keys.contains("Late/\(late.text)") }
            #expect(try await ana.shown(realm) == fixture.stored(realm))
            #expect(await ana.resets == resets)
        }
    }

    // MARK: A restored database

    /// The gateways are started again, as after each restore. The kind that takes the number of a lost one has another
    /// name.
    @Test func restoredDatabaseHasEarlierVersionUntilTheFileIsApplied() async throws {
        let (database, device, id) = try await withGateway { fixture in
            try fixture.apply(Self.file(1))
            let (ana, id) = (try await fixture.device("ana@example.com"), UUID())
            let put = await ana.mutation("put", id, #"{"field1":1}"#, kind: "Form")
            #expect(try await ana.send([put]).results[0].hasPrefix("accepted"))
            try await ana.sync()
            return (fixture.database, ana, id)
        }
        let backup = try copyDatabase(database)
        let latest = try await withGateway(at: database) { fixture in
            try fixture.apply(Self.file(2, and: ["Late"]))
            let other = try await fixture.device("ana@example.com")
            let mutations = [
                await other.mutation("patch", id, #"{"field2":2}"#, kind: "Form"),
                await other.mutation("put", UUID(), #"{"field1":1}"#, kind: "Late"),
            ]
            #expect(try await other.send(mutations).results.allSatisfy { $0.hasPrefix("accepted") })
            let ana = try await GatewayDevice(device, at: fixture)
            try await ana.sync()
            #expect(try await ana.shown(ana.realm) == fixture.stored(ana.realm))
            #expect(await ana.resets == device.resets)
            return ana
        }
        let restored = try fieldpost("restore", "--force", environment: ["FIELDPOST_DATABASE_URL": backup])
        #expect(restored.status == 0, "\(restored.errors)")
        try await withGateway(at: backup) { fixture in
            let ana = try await GatewayDevice(latest, at: fixture)
            let realm = await ana.realm
            func send(_ op: String, _ id: UUID, _ fields: String, kind: String = "Form") async throws -> String {
                try await ana.send([await ana.mutation(op, id, fields, kind: kind)]).results[0]
            }
            #expect(GatewayResponse(try await ana.schema()).body.hasPrefix(#"{"version":1,"#))
            #expect(try await send("patch", id, #"{"field2":2}"#).hasPrefix("unknown-field"))
            #expect(try await send("put", UUID(), #"{"field1":1}"#, kind: "Late").hasPrefix("unknown-kind"))
            #expect(try await send("patch", id, #"{"field1":2}"#).hasPrefix("accepted"))
            try await ana.sync()
            let resets = await latest.resets + [realm]
            #expect(try await ana.shown(realm) == fixture.stored(realm))
            #expect(await ana.resets == resets)

            for others in [["Other"], ["Late", "Other"]] {
                let applied = try fixture.applyFile(Self.file(2, and: others))
                #expect(applied.status == 0, "\(applied.errors)")
                #expect(try await send("patch", id, #"{"field2":3}"#).hasPrefix("accepted"))
                #expect(try await send("put", UUID(), #"{"field1":1}"#, kind: others[0]).hasPrefix("accepted"))
            }
            try await ana.sync()
            #expect(Set(await ana.shown(realm).keys.map { $0.prefix { $0 != "/" } }).isSuperset(of: ["Late", "Other"]))
            #expect(try await ana.shown(realm) == fixture.stored(realm))
            #expect(await ana.resets == resets)
            #expect(await ana.repeats == [])
        }
    }
}

extension GatewayFixture {
    /// Runs `fieldpost schema apply`.
    fileprivate func applyFile(_ file: String) throws -> CommandResult {
        try withFile(file) { try fieldpost($0, environment: ["FIELDPOST_DATABASE_URL": database]) }
    }

    private func withFile<Result>(_ file: String, _ body: ([String]) throws -> Result) throws -> Result {
        try withFolder { folder in
            let path = folder.appending(path: "kinds.json")
            try Data(file.utf8).write(to: path)
            return try body(["schema", "apply", "test", path.path])
        }
    }

    /// Kills `fieldpost schema apply` while its transaction waits for a lock, then releases the lock.
    fileprivate func killApply(_ file: String, at moment: OwnKindVersionTests.Moment) throws {
        var holder = try Connection(database, limits: .openTransaction)
        var observer = try Connection(database)
        try holder.run(
            """
            CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END'
            """)
        try holder.run(
            """
            CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON realm.kind_version DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION public.wait()
            """)
        let sessions = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()" as Statement
        let others = try observer.run(sessions).decode(Int32.self)
        var waiting: [Int32] = []
        try holder.transaction { transaction in
            try transaction.run(moment.lock)
            try withFile(file) { arguments in
                try killFieldpost(arguments, environment: ["FIELDPOST_DATABASE_URL": database]) {
                    try waitUntil("the command waits") {
                        waiting = try observer.run(
                            """
                            SELECT DISTINCT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                            WHERE NOT l.granted AND a.datname = current_database() AND l.pid <> ALL (\(others))
                            """
                        ).decode(Int32.self)
                        return !waiting.isEmpty
                    }
                }
            }
        }
        try waitUntil("the session ends") {
            try Set(observer.run(sessions).decode(Int32.self)).isDisjoint(with: waiting)
        }
        try observer.run("DROP TRIGGER wait ON realm.kind_version")
    }

    /// The rows of all tables that `fieldpost schema apply` writes.
    fileprivate func kindRows() throws -> [String] {
        try withDatabase { connection in
            try connection.run(
                """
                SELECT number || ' ' || name FROM realm.kind WHERE number >= 1000
                UNION ALL SELECT 'own ' || kind FROM realm.own_kind
                UNION ALL SELECT 'version ' || version FROM realm.kind_version
                UNION ALL SELECT detail::text FROM access.audit WHERE action = 'kinds.applied'
                ORDER BY 1
                """
            ).decode(String.self)
        }
    }
}
