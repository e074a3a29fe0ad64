import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// `fieldpost check` detects missing or wrong writes of this service, and `fieldpost repair` re-queues them.
@Suite(.ownThreads) struct RepairTests {
    /// The inconsistencies of a task whose copy is in its team's realm.
    enum Fault: CaseIterable {
        case copyDiffers, copyMissing, copyElsewhere, rowMissing, teamDeleted
    }

    @Test(arguments: Fault.allCases) func repairReprocessesInconsistentTasks(fault: Fault) throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let team = try world.acme.makeTeam(members: [ana])
        let task = try world.task("{\"title\":\"Mend\",\"team\":\"\(team.text)\"}")
        try world.settle()
        let target = ["--settle", "0", "--database", world.acme.conninfo]
        let before = try fieldpost(["check"] + target)
        #expect(before.status == 0, "\(before)")

        let (environment, realm) = (world.acme.id.rawValue, try world.acme.realm(.team(team)))
        let (common, own) = (try world.acme.realm(.common), try world.acme.realm(.user("ana@example.com")))
        let copy: Statement = "environment_id = \(environment) AND realm_id = \(realm) AND id = \(task)"
        switch fault {
        case .copyDiffers:
            try world.acme.connection.run("UPDATE store.object SET fields = '{\"title\": \"No\"}' WHERE \(copy)")
        case .copyMissing:
            try world.acme.connection.run("UPDATE store.object SET fields = NULL, deleted = true WHERE \(copy)")
        case .copyElsewhere:
            try world.acme.connection.run(
                "UPDATE task.copy SET realm_id = \(own) WHERE environment_id = \(environment) AND task_id = \(task)")
        case .rowMissing: try world.acme.connection.run("DELETE FROM task.copy WHERE task_id = \(task)")
        case .teamDeleted:
            try world.acme.connection.run(
                """
                UPDATE store.object SET fields = NULL, deleted = true
                WHERE environment_id = \(environment) AND realm_id = \(common) AND id = \(team)
                """)
        }
        let check = ["check", "--only", "tasks"] + target
        let found = try fieldpost(check)
        #expect(found.status == 1 && found.output.contains("/manager/FieldTask/\(task.text)"), "\(found)")
        let unfinished = try fieldpost(["repair", "--only", "tasks", "--wait", "0", "--yes"] + target)
        #expect(unfinished.output.contains("task-fan-out has not processed it: check that it runs"), "\(unfinished)")
        try world.settle()
        let after = try fieldpost(check)
        #expect(after.status == 0, "\(after)")
    }

    /// The inconsistencies of a note that a member wrote in the team's realm.
    enum NoteFault: CaseIterable {
        case copyDiffers, copyMissing, strayCopy, rowMissing, rowOfNothing
    }

    @Test(arguments: NoteFault.allCases) func repairReprocessesInconsistentNotes(fault: NoteFault) throws {
        var world = try TaskWorld()
        let (team, other) = (try world.acme.makeTeam(), try world.acme.makeTeam())
        let task = try world.task("{\"title\":\"Mend\",\"team\":\"\(team.text)\"}")
        try world.settle()
        let fields = "{\"task\":\"\(task.text)\",\"text\":\"a\"}"
        let note = UUID()
        try world.put(.taskNote, note, fields, in: .team(team))
        try world.settle()
        let (environment, manager) = (world.acme.id.rawValue, try world.acme.realm(.manager))
        let copy: Statement = "environment_id = \(environment) AND realm_id = \(manager) AND id = \(note)"
        switch fault {
        case .copyDiffers: try world.acme.connection.run("UPDATE store.object SET fields = '{}' WHERE \(copy)")
        case .copyMissing: try world.acme.connection.run("DELETE FROM store.object WHERE \(copy)")
        case .strayCopy:
            let key = ObjectKey(realm: try world.acme.realm(.team(other)), kind: .taskNote, id: note)
            var batch = WriteBatch(environment: world.acme.id)
            batch.put(key, try CanonicalJSON(fields), decision: 0)
            _ = try batch.commit(on: &world.acme.connection)
        case .rowMissing: try world.acme.connection.run("DELETE FROM task.note")
        case .rowOfNothing:
            try world.acme.connection.run(
                """
                INSERT INTO task.note (environment_id, note_id, version, task_id, position)
                VALUES (\(environment), gen_random_uuid(), 1, \(task), 1)
                """)
        }
        let target = ["--only", "tasks", "--settle", "0", "--database", world.acme.conninfo]
        let found = try fieldpost(["check"] + target)
        #expect(found.status == 1 && found.output.contains("/TaskNote/"), "\(found)")
        _ = try fieldpost(["repair", "--only", "tasks", "--wait", "0", "--yes"] + target.dropFirst(2))
        try world.settle()
        let after = try fieldpost(["check"] + target)
        #expect(after.status == 0, "\(after)")
        #expect(
            try Set(world.objectsByRealm(note, kind: .taskNote).keys) == ["/manager", RealmPath.team(team).description])
        #expect(try world.acme.connection.run("SELECT FROM task.note").count == 1)
    }
}
