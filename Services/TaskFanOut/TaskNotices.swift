import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The decision about a task, and the notices that follow from it.
struct TaskPlan {
    let decision: TaskDecision?
    /// The new state of its due date.
    let due: TaskDueState
    let change: TaskChange
    var events: [TaskNoticeRule.Event] = []

    /// - Parameter decision: `nil`: the master does not exist.
    init(_ item: TaskBatch.Item, _ decision: TaskDecision?, now: Timestamp) {
        self.decision = decision
        var change = TaskChange()
        // The copy has the fields of the last decision. Without a copy no person had the task.
        if item.row.version > 0, let copy = item.snapshot.copy.fields, let fields = try? JSONObject(copy.bytes) {
            change.before = TaskAssignment(
                fields, team: item.row.team, assignee: item.row.assignee, isCompleted: item.row.progress.isCompleted)
        }
        if let decision, let fields = item.fields, decision.target != .none {
            change.after = TaskAssignment(
                fields, team: decision.team, assignee: decision.assignee, isCompleted: decision.progress.isCompleted)
        }
        if let author = item.snapshot.author, author.editPosition == item.snapshot.master.editPosition {
            change.author = author.person
        }
        let dueDate = item.fields?.text(of: "dueDate").flatMap { Timestamp($0) }
        (due, change.isOverdue) = TaskNoticeRule.due(
            dueDate, after: item.row.due, isOpen: change.after?.isCompleted == false, now: now)
        self.change = change
    }
}

extension TaskBatch {
    /// Determines the notices of each task, with the members of teams whose tasks have no assignee.
    func addEvents(to plans: inout [TaskPlan], on connection: inout Connection) throws {
        let teams = Array(plans.reduce(into: Set<UUID>()) { $0.formUnion($1.change.teams) })
        var members: [UUID: Set<UUID>] = [:]
        if !teams.isEmpty {
            let rows = try connection.run(
                TaskStore.members(
                    of: teams, countMax: Int64(TaskNotices.membersMax + 1), fixedRealms, in: environment))
            for (number, person) in try rows.decode(Int32.self, String.self) {
                guard let person = UUID(uuidString: person) else { continue }
                members[teams[Int(number) - 1], default: []].insert(person)
            }
            members = members.filter { $0.value.count <= TaskNotices.membersMax }
        }
        for index in plans.indices {
            plans[index].events = TaskNoticeRule.events(plans[index].change, members: members)
        }
    }
}

/// The writes of a batch's notices, in the transaction of the changes that cause them.
struct TaskNotices {
    /// Maximum size of a team whose members are notified of its tasks without an assignee.
    static let membersMax = 200
    /// Limit on the notices of one batch; above those of one task.
    static let countMax = 5_000

    let now: Timestamp
    /// The own realms of people.
    let realms: [UUID: Int32]

    /// Adds the notices of a task. Each id is derived from the event and the positions that caused it.
    func put(_ events: [TaskNoticeRule.Event], of item: TaskBatch.Item, to batch: inout WriteBatch) throws {
        for event in events {
            guard let realm = realms[event.person] else { continue }
            let cause = "\(item.snapshot.master.position) \(item.row.version)"
            let id = UUID(name: "\(event.code.rawValue) \(event.person.text) \(cause)", in: item.task)
            let notice = Notice(about: item.task, code: event.code, text: event.text, timestamp: now)
            batch.put(
                ObjectKey(realm: realm, kind: .notice, id: id), try CanonicalJSON(encoding: notice),
                decision: item.decision)
        }
    }
}
