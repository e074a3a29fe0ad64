import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import TaskFanOut

/// Notices about tasks in PostgreSQL: each event once, in the transaction that processes it.
@Suite(.ownThreads) struct TaskNoticeTests {
    /// Assigned, changed, moved, and deleted; repeated events add nothing.
    @Test func assigneeIsNotifiedOfEachChange() throws {
        var world = try TaskWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let task = try world.task("{\"title\":\"Pipe\",\"assignee\":\"\(ana.text)\"}")
        try world.settle()
        var expected = [#"task-assigned: "Pipe" has been assigned to you"#]
        #expect(try world.notices("ana") == expected)
        try world.patch(task, #"{"title":"Pipes","dueDate":"2126-03-30T08:00:00.000Z"}"#, in: .manager)
        try world.settle()
        expected.append(#"task-changed: "Pipes" has been changed: title, due date"#)
        #expect(try world.notices("ana") == expected)
        // Neither a description nor a completion.
        try world.patch(task, #"{"taskDescription":"The blue one"}"#, in: .manager)
        try world.settle()
        #expect(try world.settleRepublished() == 0)
        #expect(try world.notices("ana") == expected)
        try world.patch(task, "{\"assignee\":\"\(ben.text)\"}", in: .manager)
        try world.settle()
        expected.append(#"task-removed: "Pipes" is no longer assigned to you"#)
        #expect(try world.notices("ana") == expected)
        #expect(try world.notices("ben") == [#"task-assigned: "Pipes" has been assigned to you"#])
        try world.acme.delete(.fieldTask, task, in: .manager)
        try world.settle()
        #expect(try world.notices("ben").count == 2)
        #expect(try world.settleRepublished() == 0)
        #expect(try world.notices("ana") == expected)
    }

    /// Without an assignee all members are concerned; a member who takes the task is the only one from then on.
    @Test func teamIsNotifiedOfOpenTasks() throws {
        var world = try TaskWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let (red, blue) = (try world.acme.makeTeam(members: [ana, ben]), try world.acme.makeTeam())
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        let assigned = #"task-assigned: "Pipe" has been assigned to your team"#
        #expect(try world.notices("ana") == [assigned])
        #expect(try world.notices("ben") == [assigned])
        try world.patch(task, "{\"assignee\":\"\(ben.text)\"}", in: .manager)
        try world.patch(task, #"{"title":"Pipes"}"#, in: .manager)
        try world.settle()
        #expect(try world.notices("ana") == [assigned])
        #expect(try world.notices("ben") == [assigned, #"task-assigned: "Pipes" has been assigned to you"#].sorted())
        // The other team has no members; the assignee is not in it.
        try world.patch(task, "{\"team\":\"\(blue.text)\"}", in: .manager)
        try world.settle()
        #expect(try world.notices("ana") == [assigned])
        #expect(try world.notices("ben").last == #"task-removed: "Pipes" is no longer assigned to you"#)
    }

    /// The assignee leaves the team: no edit of the task is the cause.
    @Test func endOfMembershipRemovesTheAssignment() throws {
        var world = try TaskWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let red = try world.acme.makeTeam(members: [ana, ben])
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\",\"assignee\":\"\(ana.text)\"}")
        try world.recordAuthor(ana, of: task)
        try world.settle()
        #expect(try world.notices("ana").isEmpty, "ana assigned herself")
        try world.acme.remove(ana, from: red)
        try world.settle()
        #expect(try world.notices("ana") == [#"task-removed: "Pipe" is no longer assigned to you"#])
        #expect(try world.notices("ben") == [#"task-assigned: "Pipe" has been assigned to your team"#])
        #expect(try world.settleRepublished() == 0)
    }

    /// A manager who is the assignee gets no notice of their own acts, a deletion included.
    @Test func ownActsCauseNoNotice() throws {
        var world = try TaskWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let task = try world.task("{\"title\":\"Pipe\",\"assignee\":\"\(ana.text)\"}")
        try world.recordAuthor(ana, of: task)
        try world.settle()
        #expect(try world.acme.connection.run("SELECT task_id FROM device.task_author").count == 0, "processed")
        try world.patch(task, #"{"title":"Pipes"}"#, in: .manager)
        try world.recordAuthor(ben, of: task)
        try world.settle()
        #expect(try world.notices("ana").count == 1)
        // Several people changed it before it was processed.
        try world.patch(task, #"{"title":"Tubes"}"#, in: .manager)
        try world.recordAuthor(nil, of: task)
        try world.settle()
        #expect(try world.notices("ana").count == 2)
        try world.acme.delete(.fieldTask, task, in: .manager)
        try world.recordAuthor(ana, of: task)
        try world.settle()
        #expect(try world.notices("ana").count == 2)
        #expect(try world.acme.connection.run("SELECT task_id FROM device.task_author").count == 0)
    }

    /// The due date passes: by the sweep, once, also if it runs twice before the task is decided.
    @Test func overdueTaskNotifiesOnce() throws {
        let clock = SetClock()
        var world = try TaskWorld(now: { clock.now })
        let ana = try world.person("ana")
        let due = Timestamp.now().adding(.seconds(-60))
        clock.now = due.adding(.seconds(-60))
        let task = try world.task("{\"title\":\"Pipe\",\"assignee\":\"\(ana.text)\",\"dueDate\":\"\(due)\"}")
        let done = try world.task(
            "{\"title\":\"Done\",\"assignee\":\"\(ana.text)\",\"dueDate\":\"\(due)\",\"isCompleted\":true}")
        try world.settle()
        #expect(try world.notices("ana").count == 1)
        clock.now = .now()
        #expect(try world.sweep() == 1)
        #expect(try world.sweep() == 0)
        try world.settle()
        let overdue = #"task-overdue: "Pipe" is overdue"#
        #expect(try world.notices("ana").last == overdue)
        #expect(try world.sweep() == 0)
        #expect(try world.settleRepublished() == 0)
        // A reopened task is overdue at once; a later due date is another event.
        try world.patch(done, #"{"isCompleted":false}"#, in: .manager)
        try world.settle()
        #expect(try world.notices("ana").contains(#"task-overdue: "Done" is overdue"#))
        let later = due.adding(.seconds(30))
        try world.patch(task, "{\"dueDate\":\"\(later)\"}", in: .manager)
        try world.settle()
        let count = try world.notices("ana").count { $0 == overdue }
        #expect(count == 2)
    }

    /// Rows of before schema 34 get their due dates; one that passed long ago causes no notice.
    @Test func tasksOfEarlierVersionsGetTheirDueDates() throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let task = try world.task(
            "{\"title\":\"Pipe\",\"assignee\":\"\(ana.text)\",\"dueDate\":\"2015-03-30T08:00:00.000Z\"}")
        try world.settle()
        try world.acme.connection.run("UPDATE task.copy SET due_at = NULL, is_due = NULL")
        #expect(try world.sweep() == 1)
        try world.settle()
        let rows = try world.acme.connection.run("SELECT due_at, is_due FROM task.copy WHERE task_id = \(task)")
        let (dueAt, isDue) = try rows[0].decode(Timestamp.self, Bool.self)
        #expect(dueAt == Timestamp("2015-03-30T08:00:00Z") && isDue)
        #expect(try world.notices("ana").count == 1)
        #expect(try world.sweep() == 0)
    }

    /// Another worker decides the same change first, and a crash before the commit: one notice.
    @Test func concurrentDecisionsNotifyOnce() throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let task = try world.task("{\"title\":\"Pipe\",\"assignee\":\"\(ana.text)\"}")
        let subject = EventSubject(realm: .manager, kind: .fieldTask, id: task)
        let environment = world.acme.id
        func decide(_ connection: inout Connection) throws -> WriteBatch {
            var handler = TaskHandler()
            var batch = WriteBatch(environment: environment)
            _ = try handler.decide(
                [WorkItem(environment: environment, subject: subject, origin: .event, attemptCount: 0)],
                in: environment, batch: &batch, on: &connection)
            return batch
        }
        // Crashes: the batch is lost.
        _ = try decide(&world.acme.connection)
        try world.settle { connection in
            let conflicts = try decide(&connection).commit(on: &connection).conflicts
            #expect(conflicts.isEmpty)
        }
        #expect(world.missedCount > 0)
        #expect(try world.notices("ana") == [#"task-assigned: "Pipe" has been assigned to you"#])
    }

    /// More notices than one batch writes: the tasks beyond the limit are processed next.
    @Test func manyTasksOfALargeTeamAreProcessed() throws {
        var world = try TaskWorld()
        var members: [UUID] = []
        for number in 0..<40 { members.append(try world.person("person\(number)")) }
        let red = try world.acme.makeTeam(members: members)
        let count = TaskNotices.countMax / members.count + 5
        for number in 0..<count { try world.task("{\"title\":\"\(number)\",\"team\":\"\(red.text)\"}") }
        try world.settle()
        for number in [0, 39] { #expect(try world.notices("person\(number)").count == count) }
        #expect(try world.settleRepublished() == 0)
    }
}

/// A clock that a test sets.
private final class SetClock: Sendable {
    private let time = Mutex(Timestamp.now())

    var now: Timestamp {
        get { time.withLock { $0 } }
        set { time.withLock { $0 = newValue } }
    }
}
