import Essentials
import FoundationEssentials
import Model

/// What those who do a task write of it: whether, when and by whom it was done.
struct TaskProgress: Equatable, Sendable {
    var isCompleted = false
    /// As it is written.
    var completionDate: String?
    var completedBy: UUID?

    init(isCompleted: Bool = false, completionDate: String? = nil, completedBy: UUID? = nil) {
        self.isCompleted = isCompleted
        self.completionDate = completionDate
        self.completedBy = completedBy
    }

    /// The progress that a task's fields tell.
    init(of fields: JSONObject) {
        isCompleted = fields.isTrue("isCompleted")
        completionDate = fields.text(of: "completionDate")
        completedBy = fields.id(of: "completedBy")
    }

    /// The fields that turn another progress into this one, as JSON. Dates and ids need no escaping.
    func fields(after other: TaskProgress) -> [(key: String, json: String)] {
        var fields: [(key: String, json: String)] = []
        func quoted(_ text: String?) -> String { text.map { "\"\($0)\"" } ?? "null" }
        if isCompleted != other.isCompleted { fields.append(("isCompleted", isCompleted ? "true" : "false")) }
        if completionDate != other.completionDate { fields.append(("completionDate", quoted(completionDate))) }
        if completedBy != other.completedBy { fields.append(("completedBy", quoted(completedBy?.text))) }
        return fields
    }
}

/// What is known of a task that has a master.
struct TaskFacts: Equatable, Sendable {
    /// One of the task's two objects.
    struct Side: Equatable, Sendable {
        var progress: TaskProgress
        /// Where a device or an integration wrote it last.
        var editPosition: Int64
    }

    /// Somebody or something that the master names.
    struct Named: Equatable, Sendable {
        var id: UUID
        var isThere: Bool
    }

    var master: Side
    /// `nil`: there is none.
    var copy: Side?
    /// What both sides agreed on last; `nil` when the task is new.
    var agreed: TaskProgress?
    var team: Named?
    /// As a person, whatever team they are in.
    var assignee: Named?
    /// Whether the assignee is in the team.
    var isMember = false
    /// Whether what was agreed on is a completion so long ago that nobody needs a copy any more.
    var isOld = false
    /// Whether it is one so long ago that managers need not hold it any more.
    var isVeryOld = false
}

/// What becomes of a task that has a master.
struct TaskDecision: Equatable, Sendable {
    /// Where a task's copy is.
    enum Place: Equatable, Sendable {
        case none
        case team(UUID)
        case person(UUID)
    }

    /// On both sides.
    var progress: TaskProgress
    /// The team that the master names from now on.
    var team: UUID?
    /// The assignee that the master names from now on.
    var assignee: UUID?
    /// Where the one copy is to be.
    var place: Place
    /// Whether the master moves to the archive.
    var isArchived: Bool
}

/// Decides about a task.
enum TaskRule {
    static func decide(_ facts: TaskFacts) -> TaskDecision {
        let progress = progress(facts)
        let team = facts.team.flatMap { $0.isThere ? $0.id : nil }
        let mayDoIt = facts.assignee?.isThere == true && (team == nil || facts.isMember)
        let assignee = mayDoIt ? facts.assignee?.id : nil
        // How old it is says nothing of a completion that is new.
        let isAsAgreed = progress.isCompleted && progress == facts.agreed
        let isArchived = isAsAgreed && facts.isVeryOld
        return TaskDecision(
            progress: progress, team: team, assignee: assignee,
            place: isArchived || isAsAgreed && facts.isOld ? .none : place(team, assignee), isArchived: isArchived)
    }

    private static func place(_ team: UUID?, _ assignee: UUID?) -> TaskDecision.Place {
        if let team { return .team(team) }
        return assignee.map(TaskDecision.Place.person) ?? .none
    }

    /// A three-way merge: whoever differs from what was agreed wins; if both do, the later edit. A position is the
    /// whole object's, so the newer one alone would let a new title undo a completion that was made before it.
    private static func progress(_ facts: TaskFacts) -> TaskProgress {
        guard let copy = facts.copy, copy.progress != facts.agreed else { return facts.master.progress }
        if facts.master.progress == facts.agreed { return copy.progress }
        return copy.editPosition > facts.master.editPosition ? copy.progress : facts.master.progress
    }
}
