public import Essentials
public import FoundationEssentials
public import Model

/// A person's or a team's tasks in three lists: overdue, upcoming and completed ones.
///
/// A task is *open* until it is completed. An open task is *overdue* if it was due before now; any other open task is
/// *upcoming*, including those without a due date. Each task is in exactly one of the lists.
///
/// Tasks with the same date are ordered by title, code point by code point, and then by id.
public struct TaskLists: Equatable, Sendable {
    /// Open tasks due before now, ordered by due date.
    public let overdue: [ListedTask]
    /// Open tasks that are not overdue, ordered by due date; those without one come last.
    public let upcoming: [ListedTask]
    /// Completed tasks, the latest first; those without a completion date come last.
    public let completed: [ListedTask]

    /// All open tasks, ordered by due date.
    public var open: [ListedTask] { overdue + upcoming }

    /// Lists the tasks of the device's person: all in their own realm, and those in their teams' realms that are
    /// assigned to them.
    ///
    /// - Parameters:
    ///   - person: The id of the `Person` object.
    ///   - own: The person's own realm, `/users/{e-mail}`.
    ///   - contents: The shown objects, see ``DeviceState/contents``.
    ///   - now: The device's time.
    public init(
        ofPerson person: UUID, realm own: RealmPath, in contents: [RealmPath: RealmContent], at now: Timestamp
    ) {
        var tasks = ListedTask.all(in: own, of: contents)
        for realm in contents.keys {
            guard case .team = realm.realmClass else { continue }
            tasks += ListedTask.all(in: realm, of: contents).filter { $0.assignee == person }
        }
        self.init(tasks, at: now)
    }

    /// Lists all tasks in a team's realm, including unassigned ones.
    ///
    /// - Parameters:
    ///   - team: The id of the `Team` object.
    ///   - contents: The shown objects. A manager's device has the realms of the manager's own teams and of those that
    ///     it requested; of other teams it has only the master tasks.
    ///   - now: The device's time.
    public init(ofTeam team: UUID, in contents: [RealmPath: RealmContent], at now: Timestamp) {
        self.init(ListedTask.all(in: .team(team), of: contents), at: now)
    }

    /// Lists master tasks on a manager's device: all, those of one person (`{ $0.assignee == ana }`), or of one team.
    /// Archived tasks are not included.
    ///
    /// - Parameters:
    ///   - contents: The shown objects.
    ///   - now: The device's time.
    ///   - isIncluded: Whether to list a task.
    public init(
        ofMastersIn contents: [RealmPath: RealmContent], at now: Timestamp,
        where isIncluded: (ListedTask) -> Bool = { _ in true }
    ) {
        self.init(ListedTask.all(in: .manager, of: contents).filter(isIncluded), at: now)
    }

    private init(_ tasks: [ListedTask], at now: Timestamp) {
        let open = tasks.filter { !$0.isCompleted }.sorted {
            ($0.due, $0.title ?? "", $0.id) < ($1.due, $1.title ?? "", $1.id)
        }
        // Ordered by due date, so overdue tasks come first.
        let firstUpcoming = open.firstIndex { !$0.isOverdue(at: now) } ?? open.endIndex
        overdue = Array(open[..<firstUpcoming])
        upcoming = Array(open[firstUpcoming...])
        completed = tasks.filter(\.isCompleted).sorted {
            ($1.done, $0.title ?? "", $0.id) < ($0.done, $1.title ?? "", $1.id)
        }
    }
}

extension ListedTask {
    fileprivate var due: Int64 { dueDate?.millisecondsSinceEpoch ?? .max }
    fileprivate var done: Int64 { completionDate?.millisecondsSinceEpoch ?? .min }
}
