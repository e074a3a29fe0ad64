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

/// The ends of a move: at the new place, at the old one, and when it is taken back.
@Suite(.ownThreads) struct MoveEndTests {
    private let place: MovedEnvironment

    init() throws { place = try MovedEnvironment() }

    @Test func aPersonHasTheSameObjectAtTheNewPlace() throws {
        var old = try Connection(place.old)
        try Registration.register(["ana@example.com"], in: place.environment, on: &old)
        try place.move()
        var connection = try Connection(place.new)
        let here = try connection.run("SELECT id FROM realm.environment WHERE name = 'acme'")[0]
            .decode(EnvironmentID.self)
        #expect(here != place.environment)
        let again = try Registration.register(["ana@example.com", "bo@example.com"], in: here, on: &connection)
        #expect(again.map(\.isNew) == [false, true])
        let ids = try connection.run("SELECT id FROM store.object WHERE kind = \(Kind.realms)").decode(UUID.self)
        #expect(
            Set(ids)
                == Set(
                    ["ana@example.com", "bo@example.com"].map {
                        Registration.objectID(of: $0, foundedAs: place.environment)
                    }))
        let login = try LoginSettings.find(try #require(EmailAddress("ana@example.com")), on: &connection)
        #expect(login?.settings.foundedAs == place.environment)
        #expect(try AccessDirectory.left(on: &connection).isEmpty)
        #expect(try AccessDirectory.left(on: &old) == [place.environment: "https://new.example"])
    }

    /// Nothing is recorded that the new place does not have, and what is old of others is removed on.
    @Test func theAuditLogIsHeldToo() throws {
        var connection = try Connection(place.old)
        let record: (Int32?) -> Statement = {
            """
            INSERT INTO access.audit (environment_id, actor, action, subject, address, happened_at)
            VALUES (\($0), 'x', 'role.changed', 'x', '', now() - interval '1 year')
            """
        }
        try connection.run(record(7))
        let receipt = try place.transfer()
        let error = #expect(throws: PostgresError.self) { try connection.run(record(7)) }
        #expect(error?.isLocked == true)
        try connection.run(record(nil))
        let page = try AuditRecord.removePage(olderThan: 3_600, after: 0, on: &connection)
        #expect(page.count == 1)
        _ = try place.line(place.run(at: place.old, "leave", "acme", receipt, "--key-from", "KEY"))
        #expect(
            try place.count(
                "SELECT count(*) FROM access.audit WHERE environment_id = 7 AND action = 'environment.left'",
                at: place.old) == 1)
    }

    @Test func thatItIsHeldIsSeen() throws {
        _ = try place.transfer()
        let variables = place.variables(at: place.old)
        let listed = try fieldpost("environment", "list", "--json", environment: variables).rows()
        #expect(listed[0]["move"] as? String == "held")
        let found = try fieldpost("doctor", environment: variables)
        #expect(found.output.contains("environment acme") && found.output.contains("held for its move"), "\(found)")
    }

    /// Whoever wants to do something about a key of it hears why nothing is done.
    @Test func keysOfAHeldEnvironmentStayAndItIsSaid() throws {
        var connection = try Connection(place.old)
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('entry-submitter', 7, 'k', 'entry.events', 0, '', 0, 'closed', true, false, 3, now())
            """)
        _ = try place.transfer()
        for act in [["discard", "--yes"], ["retry"]] {
            let answer = try fieldpost(["parked"] + act + ["--all"], environment: place.variables(at: place.old))
            #expect(answer.status == 1 && answer.errors.contains("is being moved"), "\(answer)")
        }
        #expect(try place.count("SELECT count(*) FROM pipeline.parked WHERE is_dead", at: place.old) == 2)
        #expect(try place.count("SELECT count(*) FROM access.audit WHERE action LIKE 'parked%'", at: place.old) == 0)
    }

    /// Whenever it is taken back, whoever sends it notices, and nothing stays held.
    @Test(arguments: ["\"header\"", "\"part\"", "\"held\""])
    func anExportNoticesThatItIsTakenBack(line: String) throws {
        var isTakenBack = false
        #expect(throws: MoveFailure.self) {
            try place.export { bytes in
                guard !isTakenBack, String(decoding: bytes.prefix(20), as: UTF8.self).contains(line) else { return }
                _ = try place.line(place.run(at: place.old, "take-back", "acme"))
                isTakenBack = true
            }
        }
        #expect(isTakenBack)
        #expect(try place.holdCount(at: place.old) == 0)
        var connection = try Connection(place.old)
        try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
    }

    /// What is sent once more while it is removed is not whole.
    @Test func anExportNoticesThatWhatItSendsIsDiscarded() throws {
        let receipt = try place.transfer()
        _ = try place.line(place.run(at: place.old, "leave", "acme", receipt, "--key-from", "KEY"))
        var (isDiscarded, hasEnded) = (false, false)
        let failure = #expect(throws: MoveFailure.self) {
            try place.export { bytes in
                let beginning = String(decoding: bytes.prefix(20), as: UTF8.self)
                if beginning.contains("\"end\"") { hasEnded = true }
                guard !isDiscarded, beginning.contains("\"part\"") else { return }
                _ = try place.line(place.run(at: place.old, "discard", "acme", "--yes"))
                isDiscarded = true
            }
        }
        #expect(isDiscarded && !hasEnded && failure?.description.contains("discarded") == true)
    }

    /// What was let go, to be removed, stays so.
    @Test func nothingIsHeldAnewThatIsBeingDiscarded() throws {
        let receipt = try place.transfer()
        _ = try place.line(place.run(at: place.old, "leave", "acme", receipt, "--key-from", "KEY"))
        #expect(throws: MoveFailure.self) {
            try place.export { bytes in
                guard String(decoding: bytes.prefix(20), as: UTF8.self).contains("\"header\"") else { return }
                var connection = try Connection(place.old)
                try connection.run(
                    ["UPDATE realm.move SET discarded_at = now()"]
                        + MovedTable.held.map { "SELECT realm.let_go(7, \($0)::regclass)" })
            }
        }
        #expect(try place.holdCount(at: place.old) == 0)
    }

    /// While one holds table after table, another takes it back.
    @Test func nothingStaysHeldThatIsTakenBackWhileItIsBeingHeld() throws {
        for _ in 0..<5 {
            let ended = Mutex<Bool?>(nil)
            let isOver = DispatchSemaphore(value: 0)
            let thread = Thread {
                let isWhole = (try? place.export { _ in }) != nil
                ended.withLock { $0 = isWhole }
                isOver.signal()
            }
            thread.start()
            var connection = try Connection(place.old, limits: MoveStore.limits)
            while ended.withLock({ $0 }) == nil {
                guard let move = try MoveStore.find("acme", on: &connection), move.state == .held else { continue }
                try MoveStore.takeBack(move, also: "SELECT 1", on: &connection)
                break
            }
            isOver.wait()
            if let move = try MoveStore.find("acme", on: &connection) {
                try MoveStore.takeBack(move, also: "SELECT 1", on: &connection)
            }
            #expect(try place.holdCount(at: place.old) == 0)
        }
    }

    /// Whoever exports while it is being taken back holds what was let go already: it is said, and nothing stays held.
    @Test func anExportThatBeginsWhileItIsTakenBackIsNoticed() throws {
        _ = try place.transfer()
        let all = try place.holdCount(at: place.old)
        // The last table to be let go is kept from it.
        var reader = try Connection(place.old)
        try reader.run(["BEGIN", "LOCK TABLE realm.environment IN ACCESS SHARE MODE"])
        let failure = Mutex<(any Error)?>(nil)
        let isOver = DispatchSemaphore(value: 0)
        let thread = Thread {
            do {
                var connection = try Connection(place.old, limits: MoveStore.limits)
                guard let move = try MoveStore.find("acme", on: &connection) else { return }
                try MoveStore.takeBack(move, also: "SELECT 1", on: &connection)
            } catch {
                failure.withLock { $0 = error }
            }
            isOver.signal()
        }
        thread.start()
        try waitUntil("one table is left") { try place.holdCount(at: place.old) == 2 }
        try place.export { _ in }
        #expect(try place.holdCount(at: place.old) == all)
        try reader.run("COMMIT")
        isOver.wait()
        #expect(failure.withLock { $0 as? MoveFailure }?.description.contains("once more") == true)
        _ = try place.line(place.run(at: place.old, "take-back", "acme"))
        #expect(try place.holdCount(at: place.old) == 0)
        #expect(try place.count("SELECT count(*) FROM realm.move", at: place.old) == 0)
    }

    /// As long as a taking back has not let the counter go, nobody writes the environment.
    @Test func whatIsNotWhollyTakenBackIsToldAsHeld() throws {
        _ = try place.transfer()
        var connection = try Connection(place.old)
        // What is there of it when it was stopped.
        try connection.run("UPDATE realm.move SET move_id = gen_random_uuid(), state = 'copying'")
        for table in MovedTable.held.dropFirst().reversed() {
            try connection.run("SELECT realm.let_go(7, \(table)::regclass)")
            #expect(try MoveListing.all(on: &connection).map(\.state) == [.held])
        }
        #expect(try EnvironmentStore.list(on: &connection).map(\.move) == ["held"])
        #expect(try EnvironmentStore.page(after: "", countMax: 9, on: &connection).map(\.move) == ["held"])
        _ = try place.line(place.run(at: place.old, "take-back", "acme"))
        #expect(try MoveListing.all(on: &connection).isEmpty)
        // One that is only copied is not held.
        #expect(throws: CancellationError.self) { try place.export { _ in throw CancellationError() } }
        #expect(try MoveListing.all(on: &connection).map(\.state) == [.copying])
    }

    /// What was to be removed before it was held is removed when it is taken back.
    @Test func whatIsOldIsNotRemovedWhileItIsHeld() throws {
        var connection = try Connection(place.old)
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
        _ = try place.transfer()
        let before = try place.count("SELECT count(*) FROM store.object", at: place.old)
        for _ in 0..<3 {
            _ = try Compaction.step(place.environment, keep: .seconds(1), countMax: 300, on: &connection)
        }
        #expect(try place.count("SELECT count(*) FROM store.object", at: place.old) == before)
        #expect(try place.count("SELECT count(*) FROM store.change", at: place.old) == before)
        _ = try place.line(place.run(at: place.old, "take-back", "acme"))
        // It goes on in a new generation, and what is old goes then.
        while try Compaction.step(place.environment, keep: .seconds(1), countMax: 300, on: &connection) != .removed(0) {
        }
        #expect(try place.count("SELECT count(*) FROM store.object WHERE NOT deleted", at: place.old) == before / 2)
        #expect(try place.count("SELECT count(*) FROM store.object WHERE deleted", at: place.old) == 0)
    }

    /// Nobody knows whether it has left since the backup was made.
    @Test(arguments: [true, false]) func aRestoredInstallationHoldsWhatMayHaveLeft(isHeld: Bool) throws {
        var connection = try Connection(place.old)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        if isHeld {
            _ = try place.transfer()
        } else {
            #expect(throws: CancellationError.self) { try place.export { _ in throw CancellationError() } }
        }
        let answer = try fieldpost(["restore", "--force"], environment: place.variables(at: place.old))
        #expect(answer.status == 0 && answer.errors.contains("acme was being moved"), "\(answer)")
        var after = try Connection(place.old)
        let error = #expect(throws: PostgresError.self) {
            try after.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
        }
        #expect(error?.isLocked == true)
        try after.run("UPDATE realm.environment SET position = position + 1 WHERE id = 8")
        _ = try place.line(place.run(at: place.old, "take-back", "acme"))
        #expect(try place.holdCount(at: place.old) == 0)
        #expect(
            try place.count("SELECT position FROM realm.environment WHERE id = 7", at: place.old) > 1_000_000_000)
    }

    @Test func whatStaysOfAnEnvironmentThatHasLeftIsRemoved() throws {
        let place = try MovedEnvironment(objectCount: 12_000)
        var connection = try Connection(place.old)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        try connection.run(
            """
            INSERT INTO store.change (environment_id, realm_id, position, kind, id)
            SELECT environment_id, realm_id, position, kind, id FROM store.object LIMIT 6000
            """)
        let receipt = try place.transfer()
        let early = try place.run(at: place.old, "discard", "acme", "--yes")
        #expect(early.status == 1 && early.errors.contains("acme is not arriving here"), "\(early)")
        _ = try place.line(
            place.run(at: place.old, "leave", "acme", receipt, "--to", "https://new.example", "--key-from", "KEY"))
        // Nobody else removes it.
        try connection.run("DELETE FROM store.object WHERE environment_id = 7")
        #expect(try place.count("SELECT count(*) FROM store.object", at: place.old) == 12_000)
        #expect(try place.run(at: place.old, "discard", "acme").status != 0)
        let said = try place.line(place.run(at: place.old, "discard", "acme", "--yes"))
        #expect(said.contains("what stayed of acme is removed: 18"), "\(said)")
        for table in MovedTable.all.map(\.name) + MoveRemoval.staying
        where !["access.provider", "access.domain"].contains(table) {
            let name = Statement(stringLiteral: table)
            #expect(
                try place.count("SELECT count(*) FROM \(name) WHERE environment_id = 7", at: place.old) == 0, "\(table)"
            )
        }
        // Devices are told on, and it is written by nobody.
        let settings = try LoginSettings.find(try #require(EmailAddress("ana@example.com")), on: &connection)?.settings
        #expect(settings?.environment == place.environment && settings?.clientSecret == nil)
        #expect(try AccessDirectory.left(on: &connection) == [place.environment: "https://new.example"])
        #expect(throws: PostgresError.self) {
            try connection.run("INSERT INTO realm.realm (environment_id, path) VALUES (7, '/common')")
        }
        // What is left of it is not all of it: nobody takes it for that.
        let again = try place.run(at: place.old, "export", "acme", "--key-from", "KEY")
        #expect(again.status == 1 && again.output.isEmpty && again.errors.contains("was removed"), "\(again)")
        _ = try place.line(place.run(at: place.old, "discard", "acme", "--yes", "--signpost-too"))
        #expect(try place.holdCount(at: place.old) == 0)
        #expect(try place.count("SELECT count(*) FROM realm.environment", at: place.old) == 1)
        #expect(
            try place.count(
                "SELECT count(*) FROM access.audit WHERE action = 'environment.discarded'", at: place.old) == 2)
    }
}
