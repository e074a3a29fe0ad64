import Essentials
import FoundationEssentials
import Model

/// The progress of a task, which assignees may write: whether, when and by whom it was completed.
struct TaskProgress: Equatable, Sendable {
    var isCompleted = false
    /// The date as written.
    var completionDate: String?
    var completedBy: UUID?

    /// Returns the fields that change another progress into this one, as JSON. Dates and ids need no escaping.
    func fields(after other: TaskProgress) -> [(key: String, json: String)] {
        var fields: [(key: String, json: String)] = []
        func quoted(_ text: String?) -> String { text.map { "\"\($0)\"" } ?? "null" }
        if isCompleted != other.isCompleted { fields.append(("isCompleted", isCompleted ? "true" : "false")) }
        if completionDate != other.completionDate { fields.append(("completionDate", quoted(completionDate))) }
        if completedBy != other.completedBy { fields.append(("completedBy", quoted(completedBy?.text))) }
        return fields
    }
}

extension TaskProgress {
    /// Reads the progress from a task's fields.
    init(of fields: JSONObject) {
        isCompleted = fields.isTrue("isCompleted")
        completionDate = fields.text(of: "completionDate")
        completedBy = fields.id(of: "completedBy")
    }
}

/// The facts about a task with a master that the decision depends on.
struct TaskFacts: Equatable, Sendable {
    /// One of the task's two objects.
    struct Side: Equatable, Sendable {
        var progress: TaskProgress
        /// The position of the last write by a device or an integration.
        var editPosition: Int64
    }

    /// A team or a person that the master references.
    struct Reference: Equatable, Sendable {
        var id: UUID
        var exists: Bool
    }

    var master: Side
    /// `nil`: there is no copy.
    var copy: Side?
    /// The base of the three-way merge: the last progress that both sides had; `nil` for a new task.
    var base: TaskProgress?
    var team: Reference?
    /// The assignee, in any team or none.
    var assignee: Reference?
    /// Whether the assignee is in the team.
    var isMember = false
    /// Whether the base is a completion past the retention of copies.
    var isCopyExpired = false
    /// Whether the base is a completion past the retention of masters.
    var isMasterExpired = false
}

/// The decision about a task with a master.
struct TaskDecision: Equatable, Sendable {
    /// The realm of a task's copy.
    enum CopyTarget: Equatable, Sendable {
        case none
        case team(UUID)
        case person(UUID)
    }

    /// The progress of both sides.
    var progress: TaskProgress
    /// The new team of the master.
    var team: UUID?
    /// The new assignee of the master.
    var assignee: UUID?
    /// The realm of the only copy.
    var target: CopyTarget
    /// Whether the master moves to the archive.
    var isArchived: Bool
}

/// Decides about a task.
enum TaskRule {
    static func decide(_ facts: TaskFacts) -> TaskDecision {
        let progress = progress(facts)
        let team = facts.team.flatMap { $0.exists ? $0.id : nil }
        let isValidAssignee = facts.assignee?.exists == true && (team == nil || facts.isMember)
        let assignee = isValidAssignee ? facts.assignee?.id : nil
        // The retention applies to the base, not to a new completion.
        let isBaseCompletion = progress.isCompleted && progress == facts.base
        let isArchived = isBaseCompletion && facts.isMasterExpired
        return TaskDecision(
            progress: progress, team: team, assignee: assignee,
            target: isArchived || isBaseCompletion && facts.isCopyExpired ? .none : target(team, assignee),
            isArchived: isArchived)
    }

    private static func target(_ team: UUID?, _ assignee: UUID?) -> TaskDecision.CopyTarget {
        if let team { return .team(team) }
        return assignee.map(TaskDecision.CopyTarget.person) ?? .none
    }

    /// A three-way merge: the side that differs from the base wins; if both differ, the later edit. Edit positions
    /// alone do not suffice, because they are per object: a new title would undo an earlier completion.
    private static func progress(_ facts: TaskFacts) -> TaskProgress {
        guard let copy = facts.copy, copy.progress != facts.base else { return facts.master.progress }
        if facts.master.progress == facts.base { return copy.progress }
        return copy.editPosition > facts.master.editPosition ? copy.progress : facts.master.progress
    }
}
