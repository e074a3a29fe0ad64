import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Makes the tasks and memberships of deleted objects due, a limited number per step. The object's own event is
/// finished with the last step. After a crash the keys are read again.
///
/// The statements run on their own, without the environment's counter: writes that do not touch the same keys do not
/// wait for them, and between two steps the worker decides other keys.
struct RequeueProgress {
    /// A deleted team, membership or person in the state that causes the steps. A later state has its own keys.
    struct Cause: Hashable {
        let environment: EnvironmentID
        let key: ObjectKey
        let position: Int64

        /// The reason of its tasks' keys.
        fileprivate var taskReason: String {
            switch key.kind {
            case .team: "its team was deleted"
            case .person: "its assignee was deleted"
            default: "its assignee left the team"
            }
        }
    }

    /// The ids whose keys are not due yet.
    private struct RequeueList {
        var tasks: ArraySlice<UUID>
        var memberships: ArraySlice<UUID>
        var usedAt: ContinuousClock.Instant

        var isEmpty: Bool { tasks.isEmpty && memberships.isEmpty }

        /// Removes and returns up to `countMax` ids.
        mutating func take(_ countMax: Int) -> (tasks: ArraySlice<UUID>, memberships: ArraySlice<UUID>) {
            let taken = (tasks.prefix(countMax), memberships.prefix(max(0, countMax - tasks.count)))
            tasks.removeFirst(taken.0.count)
            memberships.removeFirst(taken.1.count)
            return taken
        }
    }

    /// Limit on the keys of a step.
    static let countMax = 100
    /// Time after which an unused list is discarded: the object was restored, or another worker processes the event.
    static let unusedMax = Duration.seconds(600)

    private var lists: [Cause: RequeueList] = [:]

    /// Returns the causes whose keys were not read yet.
    mutating func unread(_ causes: [Cause], now: ContinuousClock.Instant) -> Set<Cause> {
        lists = lists.filter { now - $0.value.usedAt < Self.unusedMax }
        return Set(causes).filter { lists[$0] == nil }
    }

    /// Begins with a cause's keys: the ids of its tasks and memberships.
    mutating func begin(_ cause: Cause, tasks: [UUID], memberships: [UUID], now: ContinuousClock.Instant) {
        lists[cause] = RequeueList(tasks: tasks[...], memberships: memberships[...], usedAt: now)
    }

    /// Makes the next keys due.
    ///
    /// - Returns: The causes that have keys left, and whether a key became due.
    mutating func step(
        _ causes: [Cause], in environment: EnvironmentID, now: ContinuousClock.Instant,
        on connection: inout Connection
    ) throws(PostgresError) -> (unfinished: Set<Cause>, isAny: Bool) {
        var (rest, left) = (lists, Self.countMax)
        var (tasks, reasons, memberships): ([UUID], [String], [UUID]) = ([], [], [])
        for cause in Set(causes) {
            guard let taken = rest[cause]?.take(left) else { continue }
            rest[cause]?.usedAt = now
            left -= taken.tasks.count + taken.memberships.count
            tasks += taken.tasks
            reasons += taken.tasks.map { _ in cause.taskReason }
            memberships += taken.memberships
        }
        let isAny = !tasks.isEmpty || !memberships.isEmpty
        if isAny {
            do {
                // In the order of their keys, as other statements defer them.
                try connection.run([
                    TaskCascade.due(memberships: memberships, in: environment),
                    TaskCascade.due(tasks, reasons: reasons, in: environment),
                ])
            } catch let error where error.isLocked {
                // Another worker is releasing one of the keys. The next step repeats this one.
                return (Set(causes), false)
            }
        }
        lists = rest.filter { !$0.value.isEmpty }
        return (Set(causes).filter { lists[$0] != nil }, isAny)
    }
}
