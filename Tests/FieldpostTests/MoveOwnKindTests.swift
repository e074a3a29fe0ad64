import Foundation
import Model
import ObjectStore
import Postgres
import Synchronization
import TenantMigration
import TestSupport
import Testing

/// Moves of an environment with own kinds, whose numbers belong to other names at the destination.
@Suite(.ownThreads) struct MoveOwnKindTests {
    private let fixture: EnvironmentMoveFixture
    private static let realm = "/users/bo@example.com"
    private static let objectCount: Int64 = 800

    private static let inspection = """
        "Inspection": {"realms": ["user"], "topic": "inspections", "properties": {
            "site": {"type": "string", "maxLength": 20},
            "photo": {"type": "string", "format": "uuid", "references": "image"},
            "finding": {"type": "string", "format": "uuid", "references": "Finding"}}}
        """
    private static let finding = #""Finding": {"realms": ["user"], "properties": {"text": {"type": "string"}}}"#
    private static let appendix = #""Appendix": {"realms": ["user"], "properties": {"text": {"type": "string"}}}"#

    init() throws {
        fixture = try EnvironmentMoveFixture(objectCount: 300)
        // Numbers 1000 and 1001, then 1002.
        for kinds in [[Self.finding, Self.inspection], [Self.finding, Self.inspection, Self.appendix]] {
            try Self.apply(kinds, to: "acme", fixture, at: fixture.source)
        }
        try Self.apply(
            [
                #""Alpha": {"realms": ["user"], "properties": {"a": {}}}"#,
                #""Beta": {"realms": ["user"], "properties": {"a": {}}}"#, Self.finding,
            ], to: "other", fixture,
            at: fixture.destination)
        var connection = try Connection(fixture.source)
        try connection.run([
            """
            INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                deleted, fields)
            SELECT 7, 90, k.number, gen_random_uuid(), 300 + n, 0, n, n % 10 = 0,
                CASE WHEN n % 10 > 0 THEN CASE k.name
                    WHEN 'Inspection' THEN json_build_object(
                        'site', 'S' || n, 'photo', (SELECT id FROM blob.content ORDER BY id OFFSET n % 20 LIMIT 1),
                        'finding', gen_random_uuid())::text
                    ELSE '{"text":"' || k.name || n || '"}' END END
            FROM generate_series(1, \(Self.objectCount)) AS n,
                LATERAL (SELECT number, name FROM realm.kind WHERE number = 1000 + n % 3) AS k
            """,
            "UPDATE realm.environment SET position = 300 + \(Self.objectCount) WHERE id = 7",
        ])
    }

    @discardableResult
    private static func apply(
        _ kinds: [String], to environment: String, _ fixture: EnvironmentMoveFixture, at installation: String,
        status: Int32 = 0
    ) throws -> String {
        try withFolder { folder in
            let file = folder.appending(path: "kinds.json")
            try Data("{\"kinds\": {\(kinds.joined(separator: ","))}}".replacing("\n", with: "").utf8).write(to: file)
            let result = try fieldpost(
                ["schema", "apply", environment, file.path], environment: fixture.variables(at: installation))
            #expect(result.status == status, "\(result)")
            return result.output + result.errors
        }
    }

    /// Returns the output of a command at both installations.
    private func both(_ arguments: String...) throws -> [String] {
        try [fixture.source, fixture.destination].map { installation in
            let result = try fieldpost(arguments, environment: fixture.variables(at: installation))
            #expect(result.status == 0, "\(arguments) \(result)")
            return result.output
        }
    }

    private func numbers(at installation: String) throws -> [String] {
        var connection = try Connection(installation)
        return try connection.run(
            """
            SELECT DISTINCT k.name, o.kind FROM store.object o JOIN realm.kind k ON k.number = o.kind
            WHERE o.kind >= 1000 ORDER BY 1
            """
        ).decode(String.self, Int16.self).map { "\($0) \($1)" }
    }

    /// References from objects to images, by the names of the kinds.
    private func references(at installation: String) throws -> [String] {
        var connection = try Connection(installation)
        return try connection.run(
            """
            SELECT k.name || ' ' || r.id || ' ' || r.blob_id FROM blob.reference r
            JOIN realm.kind k ON k.number = r.kind WHERE r.kind >= 1000 ORDER BY 1
            """
        ).decode(String.self)
    }

    /// Compares everything that has kinds, after the move.
    private func expectEqual() throws {
        #expect(try numbers(at: fixture.source) == ["Appendix 1002", "Finding 1000", "Inspection 1001"])
        #expect(try numbers(at: fixture.destination) == ["Appendix 1003", "Finding 1002", "Inspection 1004"])
        let references = try references(at: fixture.source)
        #expect(try references.count == 240 && references == self.references(at: fixture.destination))
        for arguments in [["history"], ["show"], ["show", "--version", "1"]] {
            let shown = try [fixture.source, fixture.destination].map {
                try fieldpost(["schema"] + arguments + ["acme"], environment: fixture.variables(at: $0)).output
            }
            #expect(shown[0] == shown[1] && shown[0].count > 60, "\(shown)")
        }
        for kind in ["Inspection", "Finding", "Appendix"] {
            let shown = try both("realm", "show", Self.realm, "--environment", "acme", "--kind", kind)
            #expect(shown[0] == shown[1] && shown[0].contains(kind), "\(shown)")
        }
        let check = try fieldpost(
            ["check", "--environment", "acme", "--only", "images", "--settle", "0"],
            environment: fixture.variables(at: fixture.destination))
        #expect(check.status == 0, "\(check)")
    }

    @Test func kindsGetTheNumbersOfTheirNames() throws {
        try fixture.finish(fixture.transfer())
        try expectEqual()
        // The kinds are those of any environment: of other objects there are none.
        let breaking = try Self.apply(
            [Self.finding, Self.appendix], to: "acme", fixture, at: fixture.destination, status: 1)
        #expect(breaking.contains("there are 240 objects of Inspection"), "\(breaking)")
        let more = #""More": {"realms": ["user"], "properties": {"a": {}}}"#
        let kinds = [Self.finding, Self.appendix, Self.inspection, more]
        let applied = try Self.apply(kinds, to: "acme", fixture, at: fixture.destination)
        #expect(applied.contains("acme uses version 3"), "\(applied)")
        #expect(
            try Self.apply(kinds, to: "acme", fixture, at: fixture.source, status: 1).contains(
                "is being moved to another installation"))
        _ = try fixture.line(fixture.run(at: fixture.source, "discard", "acme", "--yes", "--remove-redirect"))
        for table in ["realm.own_kind", "realm.kind_version", "realm.environment"] {
            let name = Statement(stringLiteral: table)
            #expect(try fixture.count("SELECT count(*) FROM \(name)", at: fixture.source) == 0, "\(table)")
        }
        // It may return, to numbers that exist.
        try fixture.reversed.move()
        #expect(try numbers(at: fixture.source) == ["Appendix 1002", "Finding 1000", "Inspection 1001"])
    }

    /// The import is killed at several parts, and numbers are allocated to others meanwhile.
    @Test func killedImportResumes() throws {
        var resume: String?
        for count in 1...4 {
            let stream = try fixture.stream(resume: resume)
            let parts = stream.indices.filter { stream[$0].hasPrefix(#"{"part""#) }
            let before = resume
            // The own kinds of each stream, then a page more than those that were kept.
            let kept = stream[..<parts[count == 1 ? 1 : 2]]
            try killFieldpost(
                reading: EnvironmentMoveFixture.data(kept),
                { ["environment", "import", $0, "--key-from", "KEY"] },
                environment: fixture.variables(at: fixture.destination)
            ) {
                try waitUntil("the kept parts are stored") {
                    var connection = try Connection(fixture.destination)
                    let moves = try MoveListing.all(on: &connection)
                    resume = moves.first?.resume
                    return resume != before
                }
            }
            try Self.apply(
                (1...count).map { #""Other\#($0)": {"realms": ["user"], "properties": {"a": {}}}"# }, to: "other",
                fixture,
                at: fixture.destination)
        }
        try fixture.finish(fixture.line(fixture.bring(fixture.stream(resume: resume))))
        try expectEqual()
    }

    /// A restarted copy removes what arrived, and gets the same numbers.
    @Test func restartedCopyHasSameNumbers() throws {
        let stream = try fixture.stream()
        #expect(try fixture.bring(fixture.firstPage(of: stream)).status == 1)
        try fixture.finish(fixture.transfer())
        try expectEqual()
    }

    @Test func rolledBackEnvironmentKeepsItsKinds() throws {
        _ = try fixture.transfer()
        _ = try fixture.line(fixture.run(at: fixture.source, "roll-back", "acme"))
        _ = try fixture.line(fixture.run(at: fixture.destination, "discard", "acme"))
        for table in ["realm.own_kind", "realm.kind_version", "blob.reference", "store.object"] {
            let name = Statement(stringLiteral: table)
            #expect(
                try fixture.count("SELECT count(*) FROM \(name) WHERE environment_id > 1", at: fixture.destination)
                    == 0, "\(table)")
        }
        let more = #""More": {"realms": ["user"], "properties": {"a": {}}}"#
        try Self.apply([Self.finding, Self.appendix, Self.inspection, more], to: "acme", fixture, at: fixture.source)
        try fixture.finish(fixture.transfer())
        #expect(try fixture.count("SELECT max(version)::bigint FROM realm.kind_version", at: fixture.destination) == 3)
    }

    /// A name without a number there, or of a built-in kind.
    @Test func importIsRefusedBeforeTheFirstObject() throws {
        var connection = try Connection(fixture.destination)
        let stream = try fixture.stream()
        for (change, undo, reason) in [
            (
                "INSERT INTO realm.kind (number, name) VALUES (32766, 'Last')",
                "DELETE FROM realm.kind WHERE number = 32766", "declared 31768 kinds, which is the maximum"
            ),
            (
                "INSERT INTO realm.kind (number, name) VALUES (900, 'Inspection')",
                "DELETE FROM realm.kind WHERE number = 900", "the kind Inspection, which is a built-in kind here"
            ),
        ] as [(Statement, Statement, String)] {
            try connection.run(change)
            let result = try fixture.bring(stream)
            #expect(result.status == 1 && result.errors.contains(reason), "\(result)")
            #expect(result.errors.split(separator: "\n").count == 1, "\(result)")
            #expect(try fixture.count("SELECT count(*) FROM store.object", at: fixture.destination) == 0)
            try connection.run(undo)
        }
        try fixture.finish(fixture.line(fixture.bring(stream)))
    }

    /// Rows of a kind that the stream does not name: the number is not used for another name.
    @Test func objectOfUnnamedKindIsRejected() throws {
        var connection = try Connection(fixture.source)
        try connection.run("DELETE FROM realm.own_kind WHERE kind = 1002")
        let result = try fixture.bring(fixture.stream())
        #expect(result.status == 1 && result.errors.contains("null value in column \"kind\""), "\(result)")
        #expect(
            try fixture.count(
                "SELECT count(*) FROM store.object WHERE fields LIKE '%Appendix%'", at: fixture.destination) == 0)
    }

    /// An export waits for a schema file that is being applied, also after an earlier move.
    @Test(arguments: [true, false]) func exportHasFileThatIsBeingApplied(wasMovedHere: Bool) throws {
        var connection = try Connection(fixture.source, limits: .openTransaction)
        if wasMovedHere {
            try connection.run(
                "INSERT INTO realm.move (environment_id, move_id, state) VALUES (7, gen_random_uuid(), 'begun')")
        }
        try connection.run([
            "BEGIN", "SELECT FROM realm.environment WHERE id = 7 FOR UPDATE",
            "INSERT INTO realm.kind (number, name) VALUES (1500, 'Late')",
            "INSERT INTO realm.own_kind (environment_id, kind) VALUES (7, 1500)",
        ])
        let names = Mutex("")
        let isOver = DispatchSemaphore(value: 0)
        Thread {
            do {
                try fixture.export { bytes in
                    names.withLock { $0 += String(decoding: bytes.prefix(4_000), as: UTF8.self) }
                }
            } catch {
                Issue.record(error)
            }
            isOver.signal()
        }.start()
        try waitUntil("the export waits") {
            try fixture.count("SELECT count(*) FROM (\(Statement.lockWaits)) w", at: fixture.source) > 0
        }
        try connection.run("COMMIT")
        #expect(isOver.wait(timeout: .now() + 60) == .success)
        #expect(names.withLock { $0.contains(#""name": "Late""#) && $0.contains(#"{"end""#) })
    }
}
