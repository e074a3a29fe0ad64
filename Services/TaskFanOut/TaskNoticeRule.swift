import Essentials
import FoundationEssentials
import Model

/// The parts of a task that its notices depend on.
struct TaskAssignment: Equatable, Sendable {
    var team: UUID?
    var assignee: UUID?
    var isCompleted = false
    var title = ""
    var dueDate: Timestamp?
    /// The location as canonical JSON.
    var place: [UInt8]?
}

extension TaskAssignment {
    /// - Parameter fields: The task's fields, of which the title, due date and location are read.
    init(_ fields: JSONObject, team: UUID?, assignee: UUID?, isCompleted: Bool) {
        self.init(team: team, assignee: assignee, isCompleted: isCompleted)
        title = fields.text(of: "title") ?? ""
        dueDate = fields.text(of: "dueDate").flatMap { Timestamp($0) }
        place = fields.value(of: "place").flatMap { $0.elementsEqual("null".utf8) ? nil : Array($0) }
    }

    /// The team whose members all are notified, because no person is assigned.
    var openTeam: UUID? { assignee == nil ? team : nil }
}

/// A task before and after a decision.
struct TaskChange: Equatable, Sendable {
    /// `nil`: no person had it.
    var before: TaskAssignment?
    /// `nil`: no person has it.
    var after: TaskAssignment?
    /// Whether its due date has just passed.
    var isOverdue = false
    /// The person who changed it, if it was only one.
    var author: UUID?
}

extension TaskChange {
    /// Whether it may cause notices: not if the task is completed, or its copy is removed after its completion.
    fileprivate var concernsPeople: Bool {
        if isOverdue { return true }
        if after?.isCompleted == true || after == nil && before?.isCompleted != false { return false }
        return before != after
    }

    /// The teams whose members the notices depend on.
    var teams: Set<UUID> {
        guard concernsPeople else { return [] }
        let open = [before?.openTeam, after?.openTeam].compactMap(\.self)
        return open.isEmpty ? [] : Set(open + [after?.team].compactMap(\.self))
    }
}

/// The notices about a task. A task concerns its assignee or, without one, all members of its team.
enum TaskNoticeRule {
    /// A notice for a person.
    struct Event: Equatable, Sendable {
        let person: UUID
        let code: Notice.Code
        let text: String
    }

    /// The relation of a person to a task.
    private enum Relation {
        /// None, or another member of the person's team is assigned.
        case unconcerned
        /// The person's team has it, without an assignee.
        case team
        /// The person is assigned.
        case assignee
    }

    /// Maximum time after a due date for a notice about it: longer ago, the person has seen it, or was never concerned.
    static let overdueAgeMax = Duration.seconds(86_400)
    /// Limit of a title in Unicode scalars, because a notice is limited to 4 KB.
    private static let titleScalarsMax = 500

    /// Returns the notices in the order of the people. The author of a change gets none about it.
    ///
    /// - Parameter members: The members of ``TaskChange/teams``.
    static func events(_ change: TaskChange, members: [UUID: Set<UUID>]) -> [Event] {
        guard change.concernsPeople else { return [] }
        var people = Set([change.before?.assignee, change.after?.assignee].compactMap(\.self))
        for team in [change.before?.openTeam, change.after?.openTeam] {
            people.formUnion(team.flatMap { members[$0] } ?? [])
        }
        return people.sorted().flatMap { person -> [Event] in
            let before = relation(of: person, to: change.before, members)
            let after = relation(of: person, to: change.after, members)
            var events: [Event] = []
            if person != change.author { events += event(change, person, before, after, members).map { [$0] } ?? [] }
            if change.isOverdue, after != .unconcerned, let task = change.after {
                events.append(Event(person: person, code: .taskOverdue, text: "\(title(task)) is overdue"))
            }
            return events
        }
    }

    private static func relation(
        of person: UUID, to task: TaskAssignment?, _ members: [UUID: Set<UUID>]
    ) -> Relation {
        guard let task else { return .unconcerned }
        if task.assignee == person { return .assignee }
        return task.openTeam.flatMap { members[$0] }?.contains(person) == true ? .team : .unconcerned
    }

    /// - Returns: `nil` if the change does not concern the person.
    private static func event(
        _ change: TaskChange, _ person: UUID, _ before: Relation, _ after: Relation, _ members: [UUID: Set<UUID>]
    ) -> Event? {
        switch (before, after, change.before, change.after) {
        case (.unconcerned, .assignee, _, let task?), (.team, .assignee, _, let task?):
            return Event(person: person, code: .taskAssigned, text: "\(title(task)) has been assigned to you")
        case (.unconcerned, .team, _, let task?):
            return Event(person: person, code: .taskAssigned, text: "\(title(task)) has been assigned to your team")
        case (.assignee, .assignee, let old?, let new?), (.team, .team, let old?, let new?):
            let names = changedNames(old, new)
            if names.isEmpty { return nil }
            let text = "\(title(new)) has been changed: \(names.joined(separator: ", "))"
            return Event(person: person, code: .taskChanged, text: text)
        case (.assignee, .team, let old?, _), (.assignee, .unconcerned, let old?, _):
            return Event(person: person, code: .taskRemoved, text: "\(title(old)) is no longer assigned to you")
        case (.team, .unconcerned, let old?, let new):
            // Another member took it, and the person still sees it.
            let seesIt = new?.team.flatMap { members[$0] }?.contains(person) == true
            if seesIt { return nil }
            return Event(person: person, code: .taskRemoved, text: "\(title(old)) is no longer assigned to your team")
        case (.unconcerned, .unconcerned, _, _), (_, _, nil, _), (_, _, _, nil): return nil
        }
    }

    private static func changedNames(_ old: TaskAssignment, _ new: TaskAssignment) -> [String] {
        var names: [String] = []
        if old.title != new.title { names.append("title") }
        if old.dueDate != new.dueDate { names.append("due date") }
        if old.place != new.place { names.append("location") }
        if old.team != new.team { names.append("team") }
        return names
    }

    private static func title(_ task: TaskAssignment) -> String {
        "\"\(task.title.prefix(scalars: titleScalarsMax))\""
    }
}

/// The due date of a task, as far as it was processed.
struct TaskDueState: Equatable, Sendable {
    var dueAt: Timestamp?
    /// Whether the task was decided after its due date; `nil`: it was decided by a version without due dates.
    var isDue: Bool?
}

extension TaskNoticeRule {
    /// Processes a due date.
    ///
    /// - Parameters:
    ///   - isOpen: Whether the task is not completed, and a team or person has it.
    /// - Returns: The new state, and whether the due date has just passed.
    static func due(
        _ dueAt: Timestamp?, after stored: TaskDueState, isOpen: Bool, now: Timestamp
    ) -> (state: TaskDueState, isOverdue: Bool) {
        if let dueAt, dueAt == stored.dueAt, stored.isDue == true { return (stored, false) }
        guard isOpen, let dueAt, dueAt <= now else { return (TaskDueState(dueAt: dueAt, isDue: false), false) }
        return (TaskDueState(dueAt: dueAt, isDue: true), now < dueAt.adding(overdueAgeMax))
    }
}
