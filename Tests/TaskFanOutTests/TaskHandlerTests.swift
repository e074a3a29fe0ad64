import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import TaskFanOut

/// Tasks in PostgreSQL, by people's actions, including the defects of Realm Teamwork.
@Suite(.ownThreads) struct TaskHandlerTests {
    static let done = #"{"isCompleted":true,"completionDate":"2026-03-30T09:40:00.000Z"}"#

    @Test func copyIsInItsTeamsRealm() throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let (red, blue) = (try world.acme.makeTeam(members: [ana]), try world.acme.makeTeam())
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\",\"assignee\":\"\(ana.text)\"}")
        try world.settle()
        #expect(try world.master(task, hasCopyIn: .team(red)).assignee == ana)
        // Another title.
        try world.patch(task, #"{"title":"Pipes"}"#, in: .manager)
        try world.settle()
        #expect(try world.master(task, hasCopyIn: .team(red)).title == "Pipes")
        // Another team: an assignee who is not in it is removed.
        try world.patch(task, "{\"team\":\"\(blue.text)\"}", in: .manager)
        try world.settle()
        let moved = try world.master(task, hasCopyIn: .team(blue))
        #expect(moved.assignee == nil && moved.team == blue)
        // The first team again.
        try world.patch(task, "{\"team\":\"\(red.text)\"}", in: .manager)
        try world.settle()
        #expect(try world.master(task, hasCopyIn: .team(red)).title == "Pipes")
        // No team.
        try world.patch(task, "{\"team\":null}", in: .manager)
        try world.settle()
        #expect(try world.master(task, hasCopyIn: nil).team == nil)
        try world.patch(task, "{\"assignee\":\"\(ana.text)\"}", in: .manager)
        try world.settle()
        #expect(try world.master(task, hasCopyIn: try .user("ana@example.com")).assignee == ana)
        try world.acme.delete(.fieldTask, task, in: .manager)
        try world.settle()
        #expect(try world.objectsByRealm(task).isEmpty)
        #expect(try world.settleRepublished() == 0)
    }

    @Test func completionByMemberReachesTheMaster() throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam(members: [try world.person("ana")])
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        try world.patch(task, Self.done, in: .team(red))
        try world.settle()
        let master = try world.master(task, hasCopyIn: .team(red))
        #expect(master.isCompleted && master.completionDate?.description == "2026-03-30T09:40:00.000Z")
        // The manager reopens it.
        try world.patch(task, #"{"isCompleted":false,"completionDate":null}"#, in: .manager)
        try world.settle()
        #expect(try !world.master(task, hasCopyIn: .team(red)).isCompleted)
        try world.patch(task, Self.done, in: .manager)
        try world.settle()
        #expect(try world.master(task, hasCopyIn: .team(red)).isCompleted)
        try world.patch(task, #"{"isCompleted":false,"completionDate":null}"#, in: .team(red))
        try world.settle()
        #expect(try !world.master(task, hasCopyIn: .team(red)).isCompleted)
        #expect(try world.settleRepublished() == 0)
    }

    /// An edit position is per object: the manager's edit is later, but does not concern the progress.
    @Test(arguments: [true, false]) func newTitleKeepsCompletion(isTitleFirst: Bool) throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        if isTitleFirst { try world.patch(task, #"{"title":"Pipes"}"#, in: .manager) }
        try world.patch(task, Self.done, in: .team(red))
        if !isTitleFirst { try world.patch(task, #"{"title":"Pipes"}"#, in: .manager) }
        try world.settle()
        let master = try world.master(task, hasCopyIn: .team(red))
        #expect(master.isCompleted && master.title == "Pipes")
    }

    /// Completed on a phone while the manager moves the task to another team.
    @Test func newTeamKeepsCompletion() throws {
        var world = try TaskWorld()
        let (red, blue) = (try world.acme.makeTeam(), try world.acme.makeTeam())
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        try world.patch(task, "{\"team\":\"\(blue.text)\"}", in: .manager)
        try world.patch(task, Self.done, in: .team(red))
        try world.settle()
        #expect(try world.master(task, hasCopyIn: .team(blue)).isCompleted)
    }

    /// The same between the load and the commit: the decision conflicts and is retried.
    @Test func concurrentChangeConflictsAndRetries() throws {
        var world = try TaskWorld()
        let (red, blue) = (try world.acme.makeTeam(), try world.acme.makeTeam())
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        try world.patch(task, "{\"team\":\"\(blue.text)\"}", in: .manager)
        let (realm, environment, done) = (try world.acme.realm(.team(red)), world.acme.id, Self.done)
        try world.settle { connection in
            try TaskWorld.patch(task, done, in: realm, of: environment, on: &connection)
        }
        #expect(world.missedCount == 1)
        #expect(try world.master(task, hasCopyIn: .team(blue)).isCompleted)
    }

    /// The team of a new task, or of one with a copy, is deleted between the decision and its commit.
    @Test(arguments: [false, true]) func concurrentlyDeletedTeamGetsNoCopy(isKnown: Bool) throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        if isKnown {
            try world.settle()
            try world.patch(task, #"{"title":"Pump"}"#, in: .manager)
        }
        let (common, environment) = (try world.acme.realm(.common), world.acme.id)
        let missed = world.missedCount
        try world.settle { connection in
            var batch = WriteBatch(environment: environment)
            batch.delete(ObjectKey(realm: common, kind: .team, id: red), decision: 0, isEdit: true)
            _ = try batch.commit(on: &connection)
        }
        #expect(world.missedCount > missed)
        #expect(try world.master(task, hasCopyIn: nil).team == nil)
    }

    @Test func deletedTeamIsRemovedFromItsTasks() throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let (red, blue) = (try world.acme.makeTeam(members: [ana]), try world.acme.makeTeam(members: [ana]))
        var tasks: [UUID] = []
        for _ in 0..<40 { tasks.append(try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")) }
        let hers = try world.task("{\"title\":\"Hers\",\"team\":\"\(red.text)\",\"assignee\":\"\(ana.text)\"}")
        let other = try world.task("{\"title\":\"Other\",\"team\":\"\(blue.text)\",\"assignee\":\"\(ana.text)\"}")
        try world.settle()
        // Another name changes no task.
        try world.put(.team, red, #"{"name":"crimson"}"#, in: .common)
        try world.settle()
        try world.acme.delete(.team, red, in: .common)
        try world.settle()
        for task in tasks { #expect(try world.master(task, hasCopyIn: nil).team == nil) }
        // It still has its assignee, and its copy is in her own realm.
        #expect(try world.master(hers, hasCopyIn: try .user("ana@example.com")).assignee == ana)
        #expect(try world.master(other, hasCopyIn: .team(blue)).assignee == ana)
        #expect(try world.settleRepublished() == 0)
    }

    @Test func leavingATeamUnassignsItsTasks() throws {
        var world = try TaskWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let (red, blue) = (try world.acme.makeTeam(members: [ana, ben]), try world.acme.makeTeam(members: [ana]))
        func fields(_ team: UUID, _ person: UUID) -> String {
            "{\"title\":\"x\",\"team\":\"\(team.text)\",\"assignee\":\"\(person.text)\"}"
        }
        let hers = try world.task(fields(red, ana))
        let his = try world.task(fields(red, ben))
        let elsewhere = try world.task(fields(blue, ana))
        try world.settle()
        try world.acme.remove(ana, from: red)
        try world.settle()
        #expect(try world.master(hers, hasCopyIn: .team(red)).assignee == nil)
        #expect(try world.master(his, hasCopyIn: .team(red)).assignee == ben)
        #expect(try world.master(elsewhere, hasCopyIn: .team(blue)).assignee == ana)
        #expect(try world.settleRepublished() == 0)
    }

    @Test func deletedPersonIsUnassigned() throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let red = try world.acme.makeTeam(members: [ana])
        let own = try world.task("{\"title\":\"Own\",\"assignee\":\"\(ana.text)\"}")
        let teams = try world.task("{\"title\":\"Team's\",\"team\":\"\(red.text)\",\"assignee\":\"\(ana.text)\"}")
        let nonMembers = try world.task("{\"title\":\"Nobody's\",\"assignee\":\"\(UUID().text)\"}")
        try world.settle()
        #expect(try world.master(own, hasCopyIn: try .user("ana@example.com")).assignee == ana)
        #expect(try world.master(nonMembers, hasCopyIn: nil).assignee == nil)
        try world.acme.delete(.person, ana, in: .common)
        try world.settle()
        #expect(try world.master(own, hasCopyIn: nil).assignee == nil)
        #expect(try world.master(teams, hasCopyIn: .team(red)).assignee == nil)
        #expect(try world.settleRepublished() == 0)
    }

    /// Copies are removed and masters archived. A task that is reopened meanwhile gets its copy again.
    @Test func expiredCopiesAreRemovedAndMastersArchived() throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let (expired, reopened, fresh) = (UUID(), UUID(), UUID())
        for task in [expired, reopened, fresh] {
            try world.task("{\"title\":\"x\",\"team\":\"\(red.text)\",\"isCompleted\":true}", task)
        }
        try world.settle()
        func sweep(_ world: inout TaskWorld, _ days: Int, _ tasks: [UUID]) throws -> Int {
            try world.acme.connection.run(
                """
                UPDATE task.copy SET completed_at = now() - make_interval(days => \(Int32(days)))
                WHERE task_id = ANY (\(tasks)) AND completed_at IS NOT NULL
                """)
            let count = try world.acme.connection.run(
                TaskCascade.expired(TaskRetention(), countMax: 100, in: world.acme.id)
            ).affectedCount
            try world.settle()
            return count
        }
        #expect(try sweep(&world, 29, [expired, reopened]) == 0)
        #expect(try sweep(&world, 31, [expired, reopened]) == 2)
        #expect(try world.master(expired, hasCopyIn: nil).isCompleted)
        #expect(try world.master(fresh, hasCopyIn: .team(red)).isCompleted)
        #expect(try sweep(&world, 31, [expired, reopened]) == 0)
        try world.patch(reopened, #"{"isCompleted":false}"#, in: .manager)
        try world.settle()
        #expect(try !world.master(reopened, hasCopyIn: .team(red)).isCompleted)
        #expect(try sweep(&world, 401, [expired, reopened]) == 1)
        #expect(try Set(world.objectsByRealm(expired).keys) == ["/archive"])
        #expect(try world.settleRepublished() == 0)
    }

    /// Writes between the events are included: the copy is made from the current master.
    @Test func eventsOfOneTaskShareADecision() throws {
        var world = try TaskWorld()
        let (red, blue) = (try world.acme.makeTeam(), try world.acme.makeTeam())
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        for number in 0..<5 { try world.patch(task, "{\"title\":\"Pipe \(number)\"}", in: .manager) }
        try world.patch(task, Self.done, in: .team(red))
        try world.patch(task, "{\"team\":\"\(blue.text)\"}", in: .manager)
        try world.settle()
        let master = try world.master(task, hasCopyIn: .team(blue))
        #expect(master.isCompleted && master.title == "Pipe 4")
        #expect(try world.settleRepublished() == 0)
    }
}
