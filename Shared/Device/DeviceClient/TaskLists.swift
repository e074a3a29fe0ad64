public import Essentials
public import FoundationEssentials
public import Model

/// A person's or a team's tasks as people look at them: overdue, upcoming and completed ones.
///
/// A task is *open* until it is completed. An open task is *overdue* when it was due before now; any other open one is
/// *upcoming*, also one without a due date. So each task is in exactly one of the three lists.
///
/// Where two tasks have the same date they are in the order of their titles, letter by letter, and then of their ids.
public struct TaskLists: Equatable, Sendable {
    /// Not done and due before now, the one first that was due first.
    public let overdue: [ListedTask]
    /// Not done and not overdue, the one first that is due first; those without a due date at the end.
    public let upcoming: [ListedTask]
    /// Done, the one first that was done last; those that do not say when at the end.
    public let completed: [ListedTask]

    /// All that is not done, the one first that is, or was, due first.
    public var open: [ListedTask] { overdue + upcoming }

    /// The tasks of the person whose device this is: all in their own realm, and of those in their teams' realms which
    /// are assigned to them.
    ///
    /// - Parameters:
    ///   - person: The id of their `Person` object.
    ///   - own: Their own realm, `/users/{e-mail}`.
    ///   - contents: What the device shows, as ``DeviceState/contents`` has it.
    ///   - now: The time of the device.
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

    /// All tasks in a team's realm, those that are assigned to nobody too.
    ///
    /// - Parameters:
    ///   - team: The id of the `Team` object.
    ///   - contents: What the device shows. A manager's has the realms of the manager's own teams and of those that it
    ///     named; of any other team it has the masters.
    ///   - now: The time of the device.
    public init(ofTeam team: UUID, in contents: [RealmPath: RealmContent], at now: Timestamp) {
        self.init(ListedTask.all(in: .team(team), of: contents), at: now)
    }

    /// The masters, which managers hold: all of them, or one person's (`{ $0.assignee == ana }`), or one team's. Those
    /// in the archive are not among them.
    ///
    /// - Parameters:
    ///   - contents: What the device shows.
    ///   - now: The time of the device.
    ///   - isWanted: Whether a task is to be listed.
    public init(
        ofMastersIn contents: [RealmPath: RealmContent], at now: Timestamp,
        where isWanted: (ListedTask) -> Bool = { _ in true }
    ) {
        self.init(ListedTask.all(in: .manager, of: contents).filter(isWanted), at: now)
    }

    private init(_ tasks: [ListedTask], at now: Timestamp) {
        let open = tasks.filter { !$0.isCompleted }.sorted {
            ($0.due, $0.title ?? "", $0.id) < ($1.due, $1.title ?? "", $1.id)
        }
        // They are in the order of their due dates, and those without one are the last.
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
