import Essentials
import FoundationEssentials
import Model
import Postgres
import TestSupport
import Testing

/// `fieldpost check` knows what this service should have written, and `fieldpost repair` has it write that.
@Suite(.ownThreads) struct RepairTests {
    /// What can become wrong with a task whose copy is with its team.
    enum Fault: CaseIterable {
        case copyDiffers, copyGone, copyElsewhere, rowGone, teamGone
    }

    @Test(arguments: Fault.allCases) func whatDiffersIsDecidedAnew(fault: Fault) throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let team = try world.acme.makeTeam(members: [ana])
        let task = try world.task("{\"title\":\"Mend\",\"team\":\"\(team.text)\"}")
        try world.settle()
        let place = ["--settle", "0", "--database", world.acme.conninfo]
        let before = try fieldpost(["check"] + place)
        #expect(before.status == 0, "\(before)")

        let (environment, realm) = (world.acme.id.rawValue, try world.acme.realm(.team(team)))
        let (common, own) = (try world.acme.realm(.common), try world.acme.realm(.user("ana@example.com")))
        let copy: Statement = "environment_id = \(environment) AND realm_id = \(realm) AND id = \(task)"
        switch fault {
        case .copyDiffers:
            try world.acme.connection.run("UPDATE store.object SET fields = '{\"title\": \"No\"}' WHERE \(copy)")
        case .copyGone:
            try world.acme.connection.run("UPDATE store.object SET fields = NULL, deleted = true WHERE \(copy)")
        case .copyElsewhere:
            try world.acme.connection.run(
                "UPDATE task.copy SET realm_id = \(own) WHERE environment_id = \(environment) AND task_id = \(task)")
        case .rowGone: try world.acme.connection.run("DELETE FROM task.copy WHERE task_id = \(task)")
        case .teamGone:
            try world.acme.connection.run(
                """
                UPDATE store.object SET fields = NULL, deleted = true
                WHERE environment_id = \(environment) AND realm_id = \(common) AND id = \(team)
                """)
        }
        let check = ["check", "--what", "tasks"] + place
        let found = try fieldpost(check)
        #expect(found.status == 1 && found.output.contains("/manager/FieldTask/\(task.text)"), "\(found)")
        let begun = try fieldpost(["repair", "--what", "tasks", "--wait", "0", "--yes"] + place)
        #expect(begun.output.contains("task-fan-out has not come to it: is it running?"), "\(begun)")
        try world.settle()
        let after = try fieldpost(check)
        #expect(after.status == 0, "\(after)")
    }
}
