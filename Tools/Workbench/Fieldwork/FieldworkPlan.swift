import Essentials
import FoundationEssentials
import Model

/// The planned work of an organisation's people on teams, tasks, positions and appointments, with its expected result.
///
/// People are numbered as in ``Organisation/people``. The last is a manager, and the one before, if there are three, an
/// administrator, who also manages.
struct FieldworkPlan: Equatable, Sendable {
    struct Crew: Equatable, Sendable {
        /// The id of the `Team`.
        let id: UUID
        let name: String
        let members: [Int]
    }

    /// A task from its making to its end.
    struct TaskLife: Equatable, Sendable {
        enum End: Equatable, Sendable {
            case open
            /// By a doer, on a device.
            case completed(Timestamp, by: Int)
            /// The manager removes its team.
            case referred(Timestamp)
            /// The manager deletes it.
            case cancelled(Timestamp)
        }

        let id: UUID
        /// The task as its manager creates it, without the assignee.
        let definition: FieldTask
        /// Whose own task it is, when it has no team.
        var assignee: Int?
        let manager: Int
        let end: End

        /// As the manager makes it.
        ///
        /// - Parameter people: The ids of the `Person` objects.
        func definition(for people: [UUID]) -> FieldTask {
            var task = definition
            task.assignee = assignee.map { people[$0] }
            return task
        }

        /// The expected master; `nil`: deleted.
        ///
        /// - Parameter people: The ids of the `Person` objects.
        func expected(_ people: [UUID]) -> FieldTask? {
            var task = definition(for: people)
            switch end {
            case .open: break
            case .completed(let time, let doer):
                (task.isCompleted, task.completionDate, task.completedBy) = (true, time, people[doer])
            case .referred: task.team = nil
            case .cancelled: return nil
            }
            return task
        }

        /// When it was made.
        var created: Timestamp { definition.creationDate ?? .begin }

        /// When it ends, and not before it was made.
        var ended: Timestamp? {
            let made = created
            switch end {
            case .open: return nil
            case .completed(let time, _), .referred(let time), .cancelled(let time): return max(time, made)
            }
        }
    }

    /// A shared appointment, with its owner.
    struct CalendarItem: Equatable, Sendable {
        let id: UUID
        let appointment: Appointment
    }

    /// A state of a calendar from some time on.
    struct CalendarEdit: Equatable, Sendable {
        let owner: Int
        let recipients: [Int]
        let items: [CalendarItem]
    }

    /// The states of appointments, one edit after the other.
    typealias Calendar = [CalendarEdit]

    var crews: [Crew]
    /// In the order in which they are made.
    var tasks: [TaskLife]
    var calendars: [Calendar]

    /// The manager who makes the teams.
    var head: Int?

    /// The outline of the map, as GeoJSON; `nil`: the environment's stays.
    var outline: String?

    /// The ids of the people's `Person` objects, by number, once the people are invited.
    var people: [UUID] = []

    var editCount: Int { calendars.reduce(0) { $0 + $1.count } }

    /// All people with planned work, in the order of their numbers.
    var participants: [Int] {
        var people = Set(tasks.map(\.manager))
        if let head { people.insert(head) }
        for crew in crews { people.formUnion(crew.members) }
        for task in tasks {
            if case .completed(_, let doer) = task.end { people.insert(doer) }
        }
        for edit in calendars.joined() { people.formUnion([edit.owner] + edit.recipients) }
        return people.sorted()
    }

    // MARK: Who does what

    /// The role of a person by number.
    static func role(of person: Int, among count: Int) -> Role {
        switch count - person {
        case 1: .manager
        case 2: count >= 3 ? .admin : .worker
        default: .worker
        }
    }

    static func managers(among count: Int) -> [Int] { (0..<count).filter { role(of: $0, among: count).isManager } }

    /// The members of teams: the workers, or all people without workers.
    static func workers(among count: Int) -> [Int] {
        let workers = (0..<count).filter { !role(of: $0, among: count).isManager }
        return workers.isEmpty ? Array(0..<count) : workers
    }

    private static let crewSizeMax = 3

    /// Teams of some workers each; a worker may be in several.
    static func crews(_ names: [(id: UUID, name: String)], among count: Int) -> [Crew] {
        let workers = workers(among: count)
        let size = min(crewSizeMax, workers.count)
        return names.enumerated().map { index, crew in
            let members = (0..<size).map { workers[(index * size + $0) % workers.count] }
            return Crew(id: crew.id, name: crew.name, members: members)
        }
    }
}

extension Role {
    /// The display name.
    var title: String {
        switch self {
        case .admin: "administrator"
        case .manager: "manager"
        case .worker: "worker"
        }
    }
}

extension Timestamp {
    /// Of what has no time.
    static let begin = Timestamp(millisecondsSinceEpoch: 0)
}
