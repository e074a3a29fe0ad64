import Essentials
import FoundationEssentials
import Model
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
}
