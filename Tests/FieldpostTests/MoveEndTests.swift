import Access
import Audit
import Foundation
import Identity
import Model
import ObjectStore
import Postgres
import Synchronization
import TenantMigration
import Tenants
import TestSupport
import Testing

/// The ends of a move: activation, cut-over, rollback and deletion.
@Suite(.ownThreads) struct MoveEndTests {
    private let fixture: EnvironmentMoveFixture

    init() throws { fixture = try EnvironmentMoveFixture() }

    @Test func personKeepsRealmsObjectAfterMove() throws {
        var old = try Connection(fixture.source)
        try Registration.register(["ana@example.com"], in: fixture.environment, on: &old)
        try fixture.move()
        var connection = try Connection(fixture.destination)
        let here = try connection.run("SELECT id FROM realm.environment WHERE name = 'acme'")[0]
            .decode(EnvironmentID.self)
        #expect(here != fixture.environment)
        let again = try Registration.register(["ana@example.com", "bo@example.com"], in: here, on: &connection)
        #expect(again.map(\.isNew) == [false, true])
        let ids = try connection.run("SELECT id FROM store.object WHERE kind = \(Kind.realms)").decode(UUID.self)
        #expect(
            Set(ids)
                == Set(
                    ["ana@example.com", "bo@example.com"].map {
                        Registration.objectID(of: $0, foundedAs: fixture.environment)
                    }))
        let login = try LoginSettings.find(try #require(EmailAddress("ana@example.com")), on: &connection)
        #expect(login?.settings.foundedAs == fixture.environment)
        #expect(try AccessDirectory.left(on: &connection).isEmpty)
        #expect(try AccessDirectory.left(on: &old) == [fixture.environment: "https://new.example"])
    }

    /// No record is written that the destination lacks; old records of other environments are still deleted.
    @Test func writeBlockCoversAuditLog() throws {
        var connection = try Connection(fixture.source)
        let record: (Int32?) -> Statement = {
            """
            INSERT INTO access.audit (environment_id, actor, action, subject, address, happened_at)
            VALUES (\($0), 'x', 'role.changed', 'x', '', now() - interval '1 year')
            """
        }
        try connection.run(record(7))
        let receipt = try fixture.transfer()
        let error = #expect(throws: PostgresError.self) { try connection.run(record(7)) }
        #expect(error?.isLocked == true)
        try connection.run(record(nil))
        let page = try AuditRecord.removePage(olderThan: 3_600, after: 0, on: &connection)
        #expect(page.count == 1)
        _ = try fixture.line(fixture.run(at: fixture.source, "cut-over", "acme", receipt, "--key-from", "KEY"))
        #expect(
            try fixture.count(
                "SELECT count(*) FROM access.audit WHERE environment_id = 7 AND action = 'environment.left'",
                at: fixture.source) == 1)
    }

    @Test func writeBlockIsListedAndReported() throws {
        _ = try fixture.transfer()
        let variables = fixture.variables(at: fixture.source)
        let listed = try fieldpost("environment", "list", "--json", environment: variables).rows()
        #expect(listed[0]["move"] as? String == "held")
        let doctor = try fieldpost("doctor", environment: variables)
        #expect(doctor.output.contains("environment acme") && doctor.output.contains("for its move"), "\(doctor)")
    }

    /// Changes of its keys are rejected with the reason.
    @Test func keysOfWriteBlockedEnvironmentAreUnchanged() throws {
        var connection = try Connection(fixture.source)
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('entry-submitter', 7, 'k', 'entry.events', 0, '', 0, 'closed', true, false, 3, now())
            """)
        _ = try fixture.transfer()
        for act in [["discard", "--yes"], ["retry"]] {
            let result = try fieldpost(
                ["deferred"] + act + ["--all"], environment: fixture.variables(at: fixture.source))
            #expect(result.status == 1 && result.errors.contains("is being moved"), "\(result)")
        }
        #expect(try fixture.count("SELECT count(*) FROM pipeline.parked WHERE is_dead", at: fixture.source) == 2)
        #expect(
            try fixture.count("SELECT count(*) FROM access.audit WHERE action LIKE 'parked%'", at: fixture.source) == 0)
    }

    /// The export detects a rollback at any time, and nothing stays write-blocked.
    @Test(arguments: ["\"header\"", "\"part\"", "\"held\""])
    func exportDetectsRollback(line: String) throws {
        var isRolledBack = false
        #expect(throws: MoveFailure.self) {
            try fixture.export { bytes in
                guard !isRolledBack, String(decoding: bytes.prefix(20), as: UTF8.self).contains(line) else { return }
                _ = try fixture.line(fixture.run(at: fixture.source, "roll-back", "acme"))
                isRolledBack = true
            }
        }
        #expect(isRolledBack)
        #expect(try fixture.holdCount(at: fixture.source) == 0)
        var connection = try Connection(fixture.source)
        try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
    }

    /// An export of rows that are being deleted is incomplete, and fails.
    @Test func exportDetectsDiscard() throws {
        let receipt = try fixture.transfer()
        _ = try fixture.line(fixture.run(at: fixture.source, "cut-over", "acme", receipt, "--key-from", "KEY"))
        var (isDiscarded, hasEnded) = (false, false)
        let failure = #expect(throws: MoveFailure.self) {
            try fixture.export { bytes in
                let beginning = String(decoding: bytes.prefix(20), as: UTF8.self)
                if beginning.contains("\"end\"") { hasEnded = true }
                guard !isDiscarded, beginning.contains("\"part\"") else { return }
                _ = try fixture.line(fixture.run(at: fixture.source, "discard", "acme", "--yes"))
                isDiscarded = true
            }
        }
        #expect(isDiscarded && !hasEnded && failure?.description.contains("discarded") == true)
    }

    /// Tables that were unblocked for deletion stay unblocked.
    @Test func exportDoesNotBlockDiscardedTables() throws {
        let receipt = try fixture.transfer()
        _ = try fixture.line(fixture.run(at: fixture.source, "cut-over", "acme", receipt, "--key-from", "KEY"))
        #expect(throws: MoveFailure.self) {
            try fixture.export { bytes in
                guard String(decoding: bytes.prefix(20), as: UTF8.self).contains("\"header\"") else { return }
                var connection = try Connection(fixture.source)
                try connection.run(
                    ["UPDATE realm.move SET discarded_at = now()"]
                        + MovedTable.writeBlocked.map { "SELECT realm.let_go(7, \($0)::regclass)" })
            }
        }
        #expect(try fixture.holdCount(at: fixture.source) == 0)
    }

    /// A rollback runs while an export is blocking tables.
    @Test func rollbackDuringWriteBlockUnblocksEverything() throws {
        for _ in 0..<5 {
            let ended = Mutex<Bool?>(nil)
            let isOver = DispatchSemaphore(value: 0)
            let thread = Thread {
                let isWhole = (try? fixture.export { _ in }) != nil
                ended.withLock { $0 = isWhole }
                isOver.signal()
            }
            thread.start()
            var connection = try Connection(fixture.source, limits: MoveStore.limits)
            while ended.withLock({ $0 }) == nil {
                guard let move = try MoveStore.find("acme", on: &connection), move.state == .held else { continue }
                try MoveStore.rollBack(move, also: "SELECT 1", on: &connection)
                break
            }
            isOver.wait()
            if let move = try MoveStore.find("acme", on: &connection) {
                try MoveStore.rollBack(move, also: "SELECT 1", on: &connection)
            }
            #expect(try fixture.holdCount(at: fixture.source) == 0)
        }
    }

    /// An export during a rollback blocks tables that were unblocked: the rollback reports it, and nothing stays
    /// blocked after the next one.
    @Test func rollbackDetectsConcurrentExport() throws {
        _ = try fixture.transfer()
        let all = try fixture.holdCount(at: fixture.source)
        // Prevents the last table from being unblocked.
        var reader = try Connection(fixture.source, limits: .openTransaction)
        try reader.run(["BEGIN", "LOCK TABLE realm.environment IN ACCESS SHARE MODE"])
        let failure = Mutex<(any Error)?>(nil)
        let isOver = DispatchSemaphore(value: 0)
        let thread = Thread {
            do {
                var connection = try Connection(fixture.source, limits: MoveStore.limits)
                guard let move = try MoveStore.find("acme", on: &connection) else { return }
                try MoveStore.rollBack(move, also: "SELECT 1", on: &connection)
            } catch {
                failure.withLock { $0 = error }
            }
            isOver.signal()
        }
        thread.start()
        try waitUntil("one table is left") { try fixture.holdCount(at: fixture.source) == 2 }
        try fixture.export { _ in }
        #expect(try fixture.holdCount(at: fixture.source) == all)
        try reader.run("COMMIT")
        isOver.wait()
        #expect(failure.withLock { $0 as? MoveFailure }?.description.contains("again") == true)
        _ = try fixture.line(fixture.run(at: fixture.source, "roll-back", "acme"))
        #expect(try fixture.holdCount(at: fixture.source) == 0)
        #expect(try fixture.count("SELECT count(*) FROM realm.move", at: fixture.source) == 0)
    }

    /// Until a rollback has unblocked the counter, the environment is listed as write-blocked.
    @Test func incompleteRollbackIsListedAsWriteBlocked() throws {
        _ = try fixture.transfer()
        var connection = try Connection(fixture.source)
        // The state of an interrupted rollback.
        try connection.run("UPDATE realm.move SET move_id = gen_random_uuid(), state = 'copying'")
        for table in MovedTable.writeBlocked.dropFirst().reversed() {
            try connection.run("SELECT realm.let_go(7, \(table)::regclass)")
            #expect(try MoveListing.all(on: &connection).map(\.state) == [.held])
        }
        #expect(try EnvironmentStore.list(on: &connection).map(\.move) == ["held"])
        #expect(try EnvironmentStore.page(after: "", countMax: 9, on: &connection).map(\.move) == ["held"])
        _ = try fixture.line(fixture.run(at: fixture.source, "roll-back", "acme"))
        #expect(try MoveListing.all(on: &connection).isEmpty)
        // An environment that is only copied is not write-blocked.
        #expect(throws: CancellationError.self) { try fixture.export { _ in throw CancellationError() } }
        #expect(try MoveListing.all(on: &connection).map(\.state) == [.copying])
    }

    /// Old rows are kept during the write-block, and deleted after a rollback.
    @Test func compactionPausesDuringWriteBlock() throws {
        var connection = try Connection(fixture.source)
        try connection.run([
            """
            INSERT INTO store.change (environment_id, realm_id, position, changed_at, kind, id)
            SELECT environment_id, realm_id, position, '-infinity', kind, id FROM store.object
            """,
            """
            INSERT INTO realm.relay (environment_id, generation, epoch, published_epoch, position)
            VALUES (7, 1, 1, 1, 1000)
            ON CONFLICT (environment_id) DO UPDATE SET position = 1000
            """,
            "UPDATE realm.environment SET compacted_position = 600 WHERE id = 7",
        ])
        _ = try fixture.transfer()
        let before = try fixture.count("SELECT count(*) FROM store.object", at: fixture.source)
        for _ in 0..<3 {
            _ = try Compaction.step(fixture.environment, keep: .seconds(1), countMax: 300, on: &connection)
        }
        #expect(try fixture.count("SELECT count(*) FROM store.object", at: fixture.source) == before)
        #expect(try fixture.count("SELECT count(*) FROM store.change", at: fixture.source) == before)
        _ = try fixture.line(fixture.run(at: fixture.source, "roll-back", "acme"))
        // In the new generation old rows are deleted.
        while try Compaction.step(fixture.environment, keep: .seconds(1), countMax: 300, on: &connection) != .removed(0)
        {
        }
        #expect(
            try fixture.count("SELECT count(*) FROM store.object WHERE NOT deleted", at: fixture.source) == before / 2)
        #expect(try fixture.count("SELECT count(*) FROM store.object WHERE deleted", at: fixture.source) == 0)
    }

    /// A restored database does not show whether the environment was cut over since the backup.
    @Test(arguments: [true, false]) func restoreWriteBlocksEnvironmentsInMove(isHeld: Bool) throws {
        var connection = try Connection(fixture.source)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        if isHeld {
            _ = try fixture.transfer()
        } else {
            #expect(throws: CancellationError.self) { try fixture.export { _ in throw CancellationError() } }
        }
        let result = try fieldpost(["restore", "--force"], environment: fixture.variables(at: fixture.source))
        #expect(result.status == 0 && result.errors.contains("The move of acme"), "\(result)")
        var after = try Connection(fixture.source)
        let error = #expect(throws: PostgresError.self) {
            try after.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
        }
        #expect(error?.isLocked == true)
        try after.run("UPDATE realm.environment SET position = position + 1 WHERE id = 8")
        _ = try fixture.line(fixture.run(at: fixture.source, "roll-back", "acme"))
        #expect(try fixture.holdCount(at: fixture.source) == 0)
        #expect(
            try fixture.count("SELECT position FROM realm.environment WHERE id = 7", at: fixture.source) > 1_000_000_000
        )
    }

    @Test func discardDeletesCutOverEnvironment() throws {
        let fixture = try EnvironmentMoveFixture(objectCount: 12_000)
        var connection = try Connection(fixture.source)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        try connection.run(
            """
            INSERT INTO store.change (environment_id, realm_id, position, kind, id)
            SELECT environment_id, realm_id, position, kind, id FROM store.object LIMIT 6000
            """)
        let receipt = try fixture.transfer()
        let early = try fixture.run(at: fixture.source, "discard", "acme", "--yes")
        #expect(early.status == 1 && early.errors.contains("acme has no inactive copy here"), "\(early)")
        _ = try fixture.line(
            fixture.run(
                at: fixture.source, "cut-over", "acme", receipt, "--to", "https://new.example", "--key-from", "KEY"))
        // Other sessions cannot delete the rows.
        try connection.run("DELETE FROM store.object WHERE environment_id = 7")
        #expect(try fixture.count("SELECT count(*) FROM store.object", at: fixture.source) == 12_000)
        #expect(try fixture.run(at: fixture.source, "discard", "acme").status != 0)
        let result = try fixture.line(fixture.run(at: fixture.source, "discard", "acme", "--yes"))
        #expect(result.contains("acme is deleted here: 18"), "\(result)")
        for table in MovedTable.all.map(\.name) + MoveRemoval.staying
        where !["access.provider", "access.domain"].contains(table) {
            let name = Statement(stringLiteral: table)
            #expect(
                try fixture.count("SELECT count(*) FROM \(name) WHERE environment_id = 7", at: fixture.source) == 0,
                "\(table)"
            )
        }
        // Devices are redirected, and all writes are blocked.
        let settings = try LoginSettings.find(try #require(EmailAddress("ana@example.com")), on: &connection)?.settings
        #expect(settings?.environment == fixture.environment && settings?.clientSecret == nil)
        #expect(try AccessDirectory.left(on: &connection) == [fixture.environment: "https://new.example"])
        #expect(throws: PostgresError.self) {
            try connection.run("INSERT INTO realm.realm (environment_id, path) VALUES (7, '/common')")
        }
        // The remaining rows are incomplete and cannot be exported.
        let again = try fixture.run(at: fixture.source, "export", "acme", "--key-from", "KEY")
        #expect(again.status == 1 && again.output.isEmpty && again.errors.contains("deleted here"), "\(again)")
        _ = try fixture.line(fixture.run(at: fixture.source, "discard", "acme", "--yes", "--remove-redirect"))
        #expect(try fixture.holdCount(at: fixture.source) == 0)
        #expect(try fixture.count("SELECT count(*) FROM realm.environment", at: fixture.source) == 1)
        #expect(
            try fixture.count(
                "SELECT count(*) FROM access.audit WHERE action = 'environment.discarded'", at: fixture.source) == 2)
    }
}
