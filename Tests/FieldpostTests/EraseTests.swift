import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import Fieldpost

/// `fieldpost environment erase`, and `remove`.
@Suite(.ownThreads) struct EraseTests {
    private let fixture: ErasureFixture

    init() throws { fixture = try ErasureFixture() }

    private func erase(_ options: String...) throws -> CommandResult {
        try fieldpost(
            ["environment", "erase", "acme", "Ana@example.com"] + options,
            environment: ["FIELDPOST_DATABASE_URL": fixture.conninfo])
    }

    /// Fails if a row with the person's address, id or texts is left.
    private func expectErased() throws {
        #expect(try fixture.tables(with: "anasecret") == [])
        #expect(try fixture.tables(with: ErasureFixture.email) == [])
        #expect(try fixture.tablesOfOwnRealms() == [])
        // Tombstones have ids until the change log is compacted, as the report states.
        let withID = try fixture.tables(with: fixture.ana.text)
        #expect(Set(withID).isSubset(of: ["store.change", "store.object"]), "\(withID)")
        var connection = try Connection(fixture.conninfo)
        let acme = EnvironmentID(rawValue: 1)
        while try Compaction.step(acme, keep: .zero, countMax: 100, on: &connection) != .removed(0) {}
        #expect(try fixture.tables(with: fixture.ana.text) == [])
    }

    @Test func noTableHasThePersonAfterwards() throws {
        for text in ["anasecret", ErasureFixture.email, fixture.ana.text] {
            #expect(try fixture.tables(with: text).count > 3, "the fixture has \(text)")
        }
        let result = try erase("--yes", "--json")
        try #require(result.status == 0, "\(result.errors)")
        try expectErased()

        let kept = try result.rows().filter { $0["action"] as? String == "kept" }
        let records = kept.first { $0["content"] as? String == "records in the back end" }
        #expect(records?["ids"] as? [String] == ["B-1", "B-2"])
        let unfinished = kept.first { $0["content"] as? String == "records of unfinished submissions" }
        #expect(unfinished?["ids"] as? [String] == [ErasureFixture.unfinished.text])
        #expect(kept.contains { $0["content"] as? String == "images" && $0["count"] as? Int == 1 })
        #expect(kept.contains { ($0["content"] as? String)?.contains("Kafka") == true })
        #expect(!result.output.contains(fixture.ana.text))
    }

    /// Tables that no step erases. A new table is listed in the steps, or here.
    private static let otherTables: Set = [
        // The last statements of an erasure.
        "access.person", "realm.realm",
        // Erased with the objects by triggers, and with the login in progress.
        "blob.reference", "defect.command", "delivery.device", "onboarding.login", "onboarding.event",
        // An erasure is refused while it has rows.
        "realm.move_part",
        // No data of people.
        "access.provider", "access.domain", "access.integration", "access.outline", "audience.tree",
        "audience.catalogue", "backend.connection", "backend.defect_tracker", "backend.delivery", "defect.run",
        "defect.seen", "defect.watermark", "onboarding.counter", "onboarding.token_claims", "pipeline.missed",
        "pipeline.progress", "poll.run", "poll.watermark", "realm.environment", "realm.kind", "realm.kind_version",
        "realm.lineage",
        "realm.migration", "realm.move", "realm.own_kind", "realm.relay", "realm.relay_offset", "realm.republish",
    ]

    @Test func everyTableWithPeopleIsErased() throws {
        var connection = try Connection(fixture.conninfo)
        let steps = try subject(on: &connection).steps
        let tables = Set(try ErasureFixture.tables(on: &connection))
        #expect(tables == Set(steps.map(\.table)).union(Self.otherTables))
        for step in steps {
            let count = try connection.run(step.count)[0].decode(Int64.self)
            #expect(count > 0, "the fixture has \(step.content) (\(step.table))")
        }
        for table in ["blob.reference", "defect.command", "delivery.device", "onboarding.event"] {
            let name = Statement(stringLiteral: table)
            #expect(try connection.run("SELECT FROM \(name)").count > 0, "the fixture has \(table)")
        }
    }

    private func subject(on connection: inout Connection) throws -> ErasureSubject {
        let address = try #require(EmailAddress(ErasureFixture.email))
        return try ErasureSubject.load(
            address, in: EnvironmentID(rawValue: 1), pseudonym: "erased-1", on: &connection)
    }

    /// A service that was processing an event when the person was erased has the number of their realm, as has a
    /// gateway at which a device registers the person again.
    @Test(arguments: [false, true])
    func laterRunErasesRowsThatServicesWroteMeanwhile(isRegisteredAgain: Bool) throws {
        #expect(try erase("--yes").status == 0)
        var connection = try Connection(fixture.conninfo)
        if isRegisteredAgain {
            try connection.run(
                """
                INSERT INTO access.person (environment_id, id, email, object_id, name, issuer, subject, bound_at)
                VALUES (1, 72, \(ErasureFixture.email), gen_random_uuid(), 'anasecret', 'http://idp', 'again', now())
                """)
        }
        try connection.run([
            """
            INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            SELECT 1, 11, \(Kind.notice), gen_random_uuid(), position + 1, 0, 0, false, '{"text": "anasecret"}'
            FROM realm.environment WHERE id = 1
            """,
            "UPDATE realm.environment SET position = position + 1 WHERE id = 1",
            """
            INSERT INTO submission.attempt (environment_id, entry_id, version, realm_id, edit_position, detail)
            VALUES (1, gen_random_uuid(), 1, 11, 1, 'anasecret')
            """,
        ])
        let again = try erase("--yes", "--json")
        let deleted = try again.rows().filter { $0["action"] as? String == "deleted" }
        let tables = deleted.compactMap { $0["detail"] as? String }
        #expect(tables == ["store.object: 1 Notice", "submission.attempt"])
        try expectErased()
    }

    @Test func otherPeopleKeepTheirData() throws {
        #expect(try erase("--yes").status == 0)
        #expect(try fixture.objects(.note, 12) == [#"{"title": "Bo's own"}"#])
        #expect(try fixture.objects(.notice, 12) == [])
        #expect(try fixture.objects(.sharedItem, 12) == [])
        #expect(try fixture.objects(.deletedObject, 12) + fixture.objects(.endedShare, 12) == [])
        #expect(try fixture.objects(.membership, 14).count == 1)
        #expect(try fixture.objects(.person, 14).count == 1)
        #expect(try fixture.objects(.realms, 15).count == 1)
        let task = try #require(try fixture.objects(.fieldTask, 16).first)
        #expect(task.contains("roof") && task.contains(#""assignee": null"#) && task.contains(#""completedBy": null"#))
        var connection = try Connection(fixture.conninfo)
        let (version, realm, assignee) = try connection.run(
            "SELECT version, realm_id, coalesce(assignee_id, completed_by) FROM task.copy")[0].decode(
                Int64.self, Int32?.self, UUID?.self)
        #expect(version == 5 && realm == nil && assignee == nil)
        #expect(try fixture.objects(.taskNote, 16) == [])
        #expect(try fixture.objects(.taskNote, 17).count == 1, "the note of another person")
        let notes = try connection.run("SELECT version, realm_id FROM task.note")[0].decode(Int64.self, Int32?.self)
        #expect(notes == (2, nil))
        let reasons = try connection.run("SELECT reason FROM pipeline.parked ORDER BY 1").decode(String.self)
        #expect(reasons.count == 2 && reasons[0] == "not registered: bo@example.com")
        #expect(reasons[1].hasPrefix("not registered: erased-"), "the key of another person is still processed")
        #expect(try connection.run("SELECT email FROM access.person").decode(String.self) == ["bo@example.com"])
        // Devices of others learn of the deletions.
        let pointers = try connection.run(
            "SELECT count(*) FROM store.change WHERE realm_id = 12 AND position > \(Int64(fixture.objectCount))")
        #expect(try pointers[0].decode(Int64.self) == 7)
    }

    @Test func auditLogKeepsTheActsUnderOnePseudonym() throws {
        #expect(try erase("--yes").status == 0)
        var connection = try Connection(fixture.conninfo)
        let records = try connection.run(
            "SELECT actor, action, subject, detail::text, address FROM access.audit ORDER BY id"
        ).decode(String.self, String.self, String.self, String.self, String.self)
        try #require(
            records.map(\.1) == [
                "login.succeeded", "share.removed", "login.bound", "device.revoked", "realm.viewed", "login.succeeded",
                "person.erased",
            ])
        let pseudonym = records[6].2
        #expect(pseudonym.hasPrefix("erased-") && records[3].2 == pseudonym)
        #expect(records[..<3].allSatisfy { $0.0 == pseudonym && $0.4 == "" })
        #expect(records[0].2 == pseudonym && records[0].3 == "{}", "the device has a name and an address")
        #expect(records[1].2 == "share" && records[1].3.contains("\"/users/\(pseudonym)\""))
        #expect(records[2].2 == pseudonym, "the account identifies the person")
        #expect(records[4].2.hasPrefix("/users/\(pseudonym)/TimeEntry/") && records[4].4 == "host")
        #expect(records[5].0 == "bo@example.com" && records[5].2 == "phone" && records[5].4 == "10.0.0.2")
    }

    @Test func dryRunReportsTheSameAndChangesNothing() throws {
        func lines(_ result: CommandResult) throws -> [String] {
            try #require(result.status == 0, "\(result.errors)")
            return try result.rows().map { "\($0["action"] ?? "") \($0["count"] ?? "") \($0["content"] ?? "")" }
        }
        let before = try fixture.content()
        let preview = try lines(erase("--dry-run", "--json"))
        #expect(try fixture.content() == before)
        #expect(try lines(erase("--yes", "--json")) == preview)
    }

    /// A run that fails halfway is completed by the next one.
    @Test func interruptedErasureIsCompleted() throws {
        var connection = try Connection(fixture.conninfo)
        for table in ["store.object", "backend.person", "access.address", "access.person"] {
            let name = Statement(stringLiteral: table)
            try connection.run([
                """
                CREATE OR REPLACE FUNCTION public.interrupt() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN RAISE EXCEPTION ''interrupted''; END'
                """,
                "CREATE TRIGGER interrupt BEFORE DELETE ON \(name) EXECUTE FUNCTION public.interrupt()",
            ])
            let result = try erase("--yes")
            #expect(result.status == 1 && result.errors.contains("interrupted"), "\(table): \(result.errors)")
            try connection.run("DROP TRIGGER interrupt ON \(name)")
        }
        #expect(try erase("--yes").status == 0)
        try expectErased()
        // Nothing is left to do, and the address is not known any more.
        let again = try erase("--yes", "--json")
        #expect(try again.rows().allSatisfy { $0["action"] as? String == "kept" })
    }

    /// An address that ends like the person's is another person's, and texts of others are reported.
    @Test func longerAddressesAndTextsOfOthersAreKept() throws {
        var connection = try Connection(fixture.conninfo)
        let last = Int64(fixture.objectCount)
        try connection.run([
            "INSERT INTO access.person (environment_id, id, email) VALUES (1, 72, 'susana@example.com')",
            """
            INSERT INTO access.audit (environment_id, actor, action, subject, address)
            VALUES (1, 'susana@example.com', 'login.succeeded', 'ana@example.com.au', '')
            """,
            """
            INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            VALUES (1, 12, \(Kind.appointment), gen_random_uuid(), \(last + 1), 0, 0, false,
                    '{"title": "Call ana@example.com"}'),
                (1, 12, \(Kind.notice), gen_random_uuid(), \(last + 2), 0, 0, false, '{"text": "susana@example.com"}'),
                (1, 12, \(Kind.endedShare), gen_random_uuid(), \(last + 3), 0, 0, false,
                    '{"title": "Call ana@example.com"}')
            """,
            "UPDATE realm.environment SET position = \(last + 3) WHERE id = 1",
        ])
        let result = try erase("--yes", "--json")
        #expect(try fixture.objects(.appointment, 12).count == 1)
        #expect(try fixture.objects(.endedShare, 12) == [#"{"title": "Call ana@example.com"}"#])
        #expect(try fixture.objects(.notice, 12) == [#"{"text": "susana@example.com"}"#])
        let kept = try result.rows().first { ($0["content"] as? String)?.hasPrefix("Appointment") == true }
        #expect(kept?["action"] as? String == "kept" && kept?["count"] as? Int == 1)
        let record = try connection.run("SELECT subject FROM access.audit WHERE actor = 'susana@example.com'")
        #expect(try record.decode(String.self) == ["ana@example.com.au"])
    }

    @Test func movingEnvironmentAndInvalidAddressAreRefused() throws {
        var connection = try Connection(fixture.conninfo)
        try connection.run(
            "INSERT INTO realm.move (environment_id, move_id, state) VALUES (1, gen_random_uuid(), 'held')")
        let before = try fixture.content()
        let moving = try erase("--yes")
        #expect(moving.status == 1 && moving.errors.contains("acme is being moved"))
        #expect(try fixture.run("erase", "acme", "ana", "--yes").status == 2)
        #expect(try fixture.content() == before)
        try connection.run("DELETE FROM realm.move")
        #expect(try fixture.run("erase", "acme", ErasureFixture.email).status == 2, "no terminal to confirm at")
    }

    @Test func removedEnvironmentLeavesNoRow() throws {
        var connection = try Connection(fixture.conninfo)
        try EnvironmentRows(id: 2, name: "other", backend: .init(), people: ["cy@other.example": [:]]).insert(
            on: &connection)
        let before = try fixture.content()
        let preview = try fixture.run("remove", "acme", "--dry-run", "--json")
        #expect(try fixture.content() == before)
        let counted = try preview.rows().contains {
            $0["content"] as? String == "store.object" && $0["count"] as? Int == fixture.objectCount
        }
        #expect(counted, "\(preview)")
        #expect(try fixture.run("remove", "acme").status == 2)
        let result = try fixture.run("remove", "acme", "--yes")
        try #require(result.status == 0, "\(result.errors)")
        for text in ["anasecret", "bo@example.com", fixture.ana.text, fixture.bo.text] {
            // Records of the installation and rate counters name no environment.
            let left = try fixture.tables(with: text)
            #expect(Set(left).isSubset(of: ["access.audit", "onboarding.rate"]), "\(text): \(left)")
        }
        let names = try connection.run("SELECT name FROM realm.environment").decode(String.self)
        #expect(names == ["other"])
        #expect(try connection.run("SELECT email FROM backend.person").decode(String.self) == ["cy@other.example"])
        let audit = try connection.run("SELECT subject FROM access.audit WHERE action = 'environment.erased'")
        #expect(try audit.decode(String.self) == ["acme"])
    }
}
