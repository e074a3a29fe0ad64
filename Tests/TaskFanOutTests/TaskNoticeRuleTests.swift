import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import TaskFanOut

/// Notices about tasks as a function of the task before and after a decision.
@Suite(.ownThreads) struct TaskNoticeRuleTests {
    private static let ana = UUID()
    private static let ben = UUID()
    private static let cho = UUID()
    private static let red = UUID()
    private static let blue = UUID()
    /// Cho is in both teams.
    private static let members: [UUID: Set<UUID>] = [red: [ana, ben, cho], blue: [cho]]

    private static func task(_ team: UUID? = nil, _ assignee: UUID? = nil) -> TaskAssignment {
        TaskAssignment(team: team, assignee: assignee, title: "Pipe")
    }

    /// Returns the codes by person.
    private static func codes(
        _ before: TaskAssignment?, _ after: TaskAssignment?, by author: UUID? = nil, isOverdue: Bool = false
    ) -> [UUID: [Notice.Code]] {
        let change = TaskChange(before: before, after: after, isOverdue: isOverdue, author: author)
        return Dictionary(grouping: TaskNoticeRule.events(change, members: members), by: \.person)
            .mapValues { $0.map(\.code) }
    }

    @Test func assignmentsNotify() {
        let (ana, ben, cho, red, blue) = (Self.ana, Self.ben, Self.cho, Self.red, Self.blue)
        let table: [(TaskAssignment?, TaskAssignment?, [UUID: [Notice.Code]])] = [
            (nil, Self.task(nil, ana), [ana: [.taskAssigned]]),
            (nil, Self.task(red), [ana: [.taskAssigned], ben: [.taskAssigned], cho: [.taskAssigned]]),
            // Only the assignee of a team's task is concerned.
            (nil, Self.task(red, ana), [ana: [.taskAssigned]]),
            (Self.task(red), Self.task(red, ana), [ana: [.taskAssigned]]),
            (
                Self.task(red, ana), Self.task(red),
                [ana: [.taskRemoved], ben: [.taskAssigned], cho: [.taskAssigned]]
            ),
            (Self.task(nil, ana), Self.task(nil, ben), [ana: [.taskRemoved], ben: [.taskAssigned]]),
            (Self.task(red, ana), nil, [ana: [.taskRemoved]]),
            (Self.task(red), nil, [ana: [.taskRemoved], ben: [.taskRemoved], cho: [.taskRemoved]]),
            (Self.task(red), Self.task(blue), [ana: [.taskRemoved], ben: [.taskRemoved], cho: [.taskChanged]]),
            (Self.task(red), Self.task(blue, cho), [ana: [.taskRemoved], ben: [.taskRemoved], cho: [.taskAssigned]]),
            (Self.task(red, cho), Self.task(blue, cho), [cho: [.taskChanged]]),
            (Self.task(nil, cho), Self.task(blue, cho), [cho: [.taskChanged]]),
            (Self.task(red, ana), Self.task(red, ana), [:]), (nil, nil, [:]),
        ]
        for (before, after, expected) in table {
            let codes = Self.codes(before, after)
            #expect(codes == expected, "\(String(describing: before)) to \(String(describing: after))")
        }
    }

    @Test func authorIsNotNotified() {
        let (ana, ben) = (Self.ana, Self.ben)
        #expect(Self.codes(nil, Self.task(nil, ana), by: ana).isEmpty)
        #expect(Self.codes(Self.task(nil, ana), nil, by: ana).isEmpty)
        #expect(Self.codes(Self.task(nil, ana), Self.task(nil, ben), by: ana) == [ben: [.taskAssigned]])
        // A passed due date is not an act.
        #expect(
            Self.codes(Self.task(nil, ana), Self.task(nil, ana), by: ana, isOverdue: true) == [ana: [.taskOverdue]])
    }

    @Test func changedPartsAreNamed() {
        let before = Self.task(nil, Self.ana)
        var after = before
        (after.title, after.dueDate) = ("Pipes", Timestamp("2026-03-30T08:00:00Z"))
        after.place = Array(#"{"city": "Aarhus"}"#.utf8)
        let events = TaskNoticeRule.events(TaskChange(before: before, after: after), members: [:])
        #expect(events.map(\.text) == [#""Pipes" has been changed: title, due date, location"#])
    }

    /// Completion is the assignee's act, and the end of a completed task's retention is no event.
    @Test func completedTaskCausesNoNotice() {
        var done = Self.task(Self.red)
        done.isCompleted = true
        #expect(Self.codes(Self.task(Self.red), done).isEmpty && Self.codes(nil, done).isEmpty)
        #expect(Self.codes(done, nil).isEmpty && Self.codes(done, Self.task(Self.red)).isEmpty)
        #expect(TaskChange(before: Self.task(Self.red), after: done).teams.isEmpty)
    }

    @Test func dueDatePassesOnce() throws {
        let due = try #require(Timestamp("2026-03-30T08:00:00Z"))
        let (before, after) = (due.adding(.seconds(-1)), due.adding(.seconds(1)))
        let later = due.adding(TaskNoticeRule.overdueAgeMax)
        /// Returns the new state, and whether a notice is written.
        func result(_ dueAt: Timestamp?, _ stored: TaskDueState, _ now: Timestamp, isOpen: Bool = true) -> [Bool?] {
            let (state, isOverdue) = TaskNoticeRule.due(dueAt, after: stored, isOpen: isOpen, now: now)
            #expect(state.dueAt == dueAt)
            return [state.isDue, isOverdue]
        }
        let (new, waiting, passed) = (
            TaskDueState(), TaskDueState(dueAt: due, isDue: false), TaskDueState(dueAt: due, isDue: true)
        )
        #expect(result(due, new, before) == [false, false] && result(nil, new, after) == [false, false])
        #expect(result(due, waiting, after) == [true, true] && result(due, passed, after) == [true, false])
        #expect(result(due, new, later) == [true, false], "long ago")
        #expect(result(due, waiting, after, isOpen: false) == [false, false])
        #expect(result(due.adding(.seconds(1)), passed, after) == [true, true], "another due date")
        #expect(result(later, passed, after) == [false, false])
    }
}
