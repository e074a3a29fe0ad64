import Essentials
import Foundation
import Model
import Postgres
import TestSupport
import Testing

/// Each injected fault is reported by `fieldpost check`.
@Suite(.ownThreads) struct CheckTests {
    private let ana = UUID()
    private let bo = UUID()

    @Test func emptyEnvironmentHasNoInconsistencies() throws {
        let environment = try TestEnvironment()
        let result = try fieldpost("check", "--database", environment.conninfo)
        #expect(result.status == 0 && result.output.contains("no inconsistencies"), "\(result)")
        let other = try fieldpost("check", "--environment", "other", "--database", environment.conninfo)
        #expect(other.status == 1 && other.errors.contains("environment other does not exist"))
    }

    @Test func checkFindsTaskCopyInconsistencies() throws {
        var environment = try TestEnvironment()
        try environment.letIn("ana", ana)
        let team = try environment.makeTeam(members: [ana])
        let (task, stray, lost) = (UUID(), UUID(), UUID())
        let fields = "{\"title\":\"Repair\",\"team\":\"\(team.text)\"}"
        try environment.put([(task, fields)], .fieldTask, into: .manager)
        try environment.put([(task, fields)], .fieldTask, into: .team(team))
        let realm = try environment.realm(.team(team))
        try environment.connection.run(
            """
            INSERT INTO task.copy (environment_id, task_id, version, realm_id, team_id, is_completed)
            VALUES (\(environment.id.rawValue), \(task), 1, \(realm), \(team), false)
            """)
        #expect(try checked("tasks", environment).isEmpty)

        try environment.put([(task, #"{"title":"Other"}"#)], .fieldTask, into: .team(team))
        try environment.put([(stray, #"{"title":"Stray"}"#)], .fieldTask, into: .user("ana@example.com"))
        try environment.put(
            [(lost, "{\"title\":\"Lost\",\"team\":\"\(UUID().text)\"}")], .fieldTask, into: .manager)
        #expect(
            try checked("tasks", environment)
                == [
                    "/manager/FieldTask/\(task.text): its copy in /teams/\(team.text) has different fields",
                    "/manager/FieldTask/\(stray.text): a copy is in /users/ana@example.com, where none is expected",
                    "/manager/FieldTask/\(lost.text): its team does not exist",
                    "/manager/FieldTask/\(lost.text): task.copy has no row of it",
                ].sorted())
    }

    @Test func checkFindsTaskRegistrationInconsistencies() throws {
        var environment = try TestEnvironment()
        let (red, blue) = (try environment.makeTeam(), try environment.makeTeam())
        let (unable, missing, gone, elsewhere) = (UUID(), UUID(), UUID(), UUID())
        let fields = "{\"title\":\"Repair\",\"team\":\"\(red.text)\"}"
        try environment.put([(missing, fields), (elsewhere, fields)], .fieldTask, into: .manager)
        try environment.put([(missing, fields), (elsewhere, fields)], .fieldTask, into: .team(red))
        let (id, realms) = (
            environment.id.rawValue, [try environment.realm(.team(red)), try environment.realm(.team(blue))]
        )
        try environment.connection.run(
            """
            INSERT INTO task.copy (environment_id, task_id, version, realm_id, team_id, is_completed)
            SELECT \(id), t, 1, \(realms[0]), \(red), false FROM unnest(\([missing, elsewhere])) AS u(t)
            """)
        #expect(try checked("tasks", environment).isEmpty)

        try environment.put(
            [(unable, "{\"title\":\"Repair\",\"assignee\":\"\(UUID().text)\"}")], .fieldTask, into: .manager)
        try environment.delete(.fieldTask, missing, in: .team(red))
        try environment.connection.run([
            """
            INSERT INTO task.copy (environment_id, task_id, version, realm_id, is_completed)
            SELECT \(id), t, 1, NULL, false FROM unnest(\([unable, gone])) AS u(t)
            """,
            "UPDATE task.copy SET realm_id = \(realms[1]) WHERE task_id = \(elsewhere)",
        ])
        #expect(
            try checked("tasks", environment)
                == [
                    "/manager/FieldTask/\(unable.text): its assignee does not exist or is not in its team",
                    "/manager/FieldTask/\(missing.text): its copy is not in /teams/\(red.text)",
                    "/manager/FieldTask/\(gone.text): task.copy has a row of a task that does not exist",
                    "/manager/FieldTask/\(elsewhere.text): task.copy has a different realm",
                ].sorted())
    }

    /// Without a test that injects a fault, a check may have stopped finding any.
    @Test func everyCheckTargetHasInjectedFault() throws {
        let refused = try fieldpost("check", "--only", "nothing")
        let parts = Set(refused.errors.matches(of: try Regex("- ([a-z]+)")).compactMap { $0.output[1].substring })
            .subtracting(["nothing"])
        #expect(parts.count == 13, "\(refused)")
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let sources = try ["CheckTests.swift", "CheckRecordsTests.swift"].map {
            try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8)
        }.joined()
        for part in parts { #expect(sources.contains("checked(\"\(part)\", environment)"), "\(part)") }
    }

    @Test func checkFindsPositionCopyInconsistencies() throws {
        var environment = try TestEnvironment()
        for (name, id) in [("ana", ana), ("bo", bo)] { try environment.letIn(name, id) }
        let team = try environment.makeTeam(members: [ana])
        let location = #"{"latitude":55.6,"longitude":12.5}"#
        try environment.put([(ana, location)], .location, into: .user("ana@example.com"))
        for path in [RealmPath.manager, .team(team)] { try environment.put([(ana, location)], .location, into: path) }
        #expect(try checked("positions", environment).isEmpty)
        try environment.put([(ana, #"{"latitude":1}"#)], .location, into: .team(team))
        try environment.delete(.location, ana, in: .manager)
        try environment.put([(bo, location)], .location, into: .team(team))
        #expect(
            try checked("positions", environment)
                == [
                    "/users/ana@example.com/Location/\(ana.text): its copy in /teams/\(team.text) has different fields",
                    "/users/ana@example.com/Location/\(ana.text): its copy is not in /manager",
                    "/users/bo@example.com/Location/\(bo.text): a copy is in /teams/\(team.text), where none is "
                        + "expected",
                ].sorted())
    }

    @Test func checkFindsSharedItemInconsistencies() throws {
        var environment = try TestEnvironment()
        for (name, id) in [("ana", ana), ("bo", bo)] { try environment.letIn(name, id) }
        let note = UUID()
        let (share, link) = (Share.id(of: ana, with: bo), SharedItem.id(of: note, with: bo))
        let own = try RealmPath.user("ana@example.com")
        let pair = "{\"owner\":\"\(ana.text)\",\"recipient\":\"\(bo.text)\"}"
        try environment.put([(note, #"{"text":"Hello"}"#)], .note, into: own)
        try environment.put(
            [(link, "{\"kind\":\"Note\",\"item\":\"\(note.text)\",\"recipient\":\"\(bo.text)\"}")], .sharedItem,
            into: own)
        try environment.put([(note, #"{"text":"Hello"}"#)], .note, into: .share(share))
        for path in [own, try .user("bo@example.com"), .share(share)] {
            try environment.put([(share, pair)], .share, into: path)
        }
        #expect(try checked("shares", environment).isEmpty)
        try environment.delete(.share, share, in: .user("bo@example.com"))
        try environment.put([(note, #"{"text":"Bye"}"#)], .note, into: own)
        let key = "/users/ana@example.com/SharedItem/\(link.text)"
        #expect(
            try checked("shares", environment)
                == [
                    "\(key): its copy in /shares/\(share.text) has different fields",
                    "\(key): there is no Share in /users/bo@example.com",
                ])
        try environment.delete(.sharedItem, link, in: own)
        #expect(
            try checked("shares", environment) == ["\(key): a copy is in /shares/\(share.text), where none is expected"]
        )
    }

    @Test func checkFindsStatusLogInconsistencies() throws {
        var environment = try TestEnvironment()
        let entry = UUID()
        let own = try RealmPath.user("ana@example.com")
        func line(_ status: String, _ time: String) -> (id: UUID, json: String) {
            (UUID(), "{\"entry\":\"\(entry.text)\",\"status\":\"\(status)\",\"timestamp\":\"\(time)\"}")
        }
        try environment.put([(entry, #"{"status":"released"}"#)], .timeEntry, into: own)
        try environment.put(
            [line("released", "2026-05-02T10:00:00.000Z"), line("submitted", "2026-05-02T09:00:00.000Z")],
            .timeEntryStatus, into: own)
        #expect(try checked("statuses", environment).isEmpty)
        try environment.put([line("rejected", "2026-05-02T11:00:00.000Z")], .timeEntryStatus, into: own)
        #expect(
            try checked("statuses", environment)
                == ["/users/ana@example.com/TimeEntry/\(entry.text): its status is released, but its log has rejected"])
    }

    @Test func repairRewritesDatabaseRowsAtNewPositions() throws {
        var environment = try TestEnvironment()
        let (note, task, image) = (UUID(), UUID(), UUID())
        let own = try RealmPath.user("ana@example.com")
        try environment.put([(note, #"{"text":"Hello"}"#)], .note, into: own)
        try environment.put([(task, "{\"title\":\"Repair\",\"image\":\"\(image.text)\"}")], .fieldTask, into: .manager)
        for part in ["changes", "images"] { #expect(try checked(part, environment).isEmpty) }
        let id = environment.id.rawValue
        let before = try environment.connection.run("SELECT position FROM realm.environment WHERE id = \(id)")[0]
            .decode(Int64.self)
        try environment.connection.run("DELETE FROM store.change WHERE environment_id = \(id) AND id = \(note)")
        try environment.connection.run(
            "UPDATE blob.reference SET blob_id = \(UUID()) WHERE environment_id = \(id) AND blob_id = \(image)")
        try environment.connection.run(
            """
            INSERT INTO store.change (environment_id, realm_id, position, kind, id)
            VALUES (\(id), \(try environment.realm(own)), \(before + 1), \(Kind.note), \(UUID()))
            """)
        try environment.connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = \(id)")
        #expect(try checked("changes", environment).count == 2)
        #expect(try checked("images", environment).count == 2)

        let refused = try fieldpost("repair", "--settle", "0", "--database", environment.conninfo)
        #expect(refused.status != 0 && refused.errors.contains("--yes"), "\(refused)")
        let result = try fieldpost(
            "repair", "--only", "changes", "--only", "images", "--settle", "0", "--yes", "--database",
            environment.conninfo)
        #expect(result.status == 0 && result.output.contains("4 repaired"), "\(result)")
        for part in ["changes", "images"] { #expect(try checked(part, environment).isEmpty) }
        let position = try environment.connection.run("SELECT position FROM store.object WHERE id = \(note)")[0]
            .decode(Int64.self)
        #expect(position > before)
        let audit = try fieldpost("audit", "list", "--database", environment.conninfo)
        #expect(audit.output.contains("objects.repaired"), "\(audit)")
    }

    @Test func repairDefersKeysForOwningService() throws {
        var environment = try TestEnvironment()
        try environment.letIn("ana", ana)
        try environment.put([(ana, #"{"latitude":1,"longitude":2}"#)], .location, into: .user("ana@example.com"))
        let result = try fieldpost(
            "repair", "--settle", "0", "--wait", "0", "--only", "positions", "--yes", "--database",
            environment.conninfo)
        #expect(result.status == 1 && result.output.contains("location-fan-out has not processed it"), "\(result)")
        let keys = try environment.connection.run("SELECT key FROM pipeline.parked WHERE next_at <= now()")
        #expect(try keys.decode(String.self) == ["/users/ana@example.com/Location/\(ana.text)"])
    }
}
