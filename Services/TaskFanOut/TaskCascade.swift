import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Re-queues tasks and memberships after changes of other objects, and expired tasks.
enum TaskCascade {
    /// Finds the tasks that reference missing teams, memberships or people, as the decisions read them. Rows: decision,
    /// the task's id.
    ///
    /// It may read many tasks and therefore runs before the decisions' transaction. That is correct: later decisions
    /// about tasks read the missing object's state, or fail because it has changed.
    ///
    /// A membership's tombstone has no fields. Its id suffices: the first half of the person's, the last of the team's.
    static func tasks(
        referencing missing: [(key: ObjectKey, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        let ranges = missing.map { Membership.ids(of: $0.key.id) }
        return """
            SELECT g.decision, c.task_id
            FROM unnest(\(missing.map(\.key.kind)), \(missing.map(\.key.id)), \(ranges.map(\.lowerBound)),
                \(ranges.map(\.upperBound)), \(missing.map { Int32($0.decision) })) AS g(kind, id, low, high, decision)
            CROSS JOIN LATERAL (
                SELECT c.task_id FROM task.copy c
                WHERE g.kind = \(Kind.team) AND c.environment_id = \(environment.rawValue) AND c.team_id = g.id
                UNION ALL
                SELECT c.task_id FROM task.copy c
                WHERE g.kind = \(Kind.person) AND c.environment_id = \(environment.rawValue)
                    AND c.assignee_id = g.id
                UNION ALL
                SELECT c.task_id FROM task.copy c
                WHERE g.kind = \(Kind.membership) AND c.environment_id = \(environment.rawValue)
                    AND c.assignee_id BETWEEN g.low AND g.high
                    AND substr(uuid_send(c.team_id), 9) = substr(uuid_send(g.id), 9)
                OFFSET 0
            ) AS c(task_id)
            """
    }

    static func due(_ tasks: [UUID], reasons: [String], in environment: EnvironmentID) -> Statement {
        Cascade.due(
            group: Services.taskFanOut.name, topic: Topics.task, in: environment,
            tasks.map { "/manager/FieldTask/\($0.text)" }, spread: tasks, reasons: reasons)
    }

    /// Memberships of deleted teams and people.
    static func due(memberships: [UUID], in environment: EnvironmentID) -> Statement {
        Cascade.due(
            group: Services.taskFanOut.name, topic: Topics.team, in: environment,
            memberships.map { "/common/Membership/\($0.text)" }, spread: memberships,
            reasons: memberships.map { _ in "its team or its person was deleted" })
    }

    /// The environments with tasks to decide because of their due dates. Rows: the environment.
    static let environmentsWithDueTasks: Statement = """
        SELECT environment_id FROM task.copy
        WHERE is_due = false AND due_at <= now() AND NOT is_completed AND realm_id IS NOT NULL
        UNION
        SELECT environment_id FROM task.copy WHERE is_due IS NULL
        """

    /// Tasks whose due date has passed, or that a version without due dates decided, except deferred ones.
    static func due(countMax: Int, in environment: EnvironmentID) -> Statement {
        func tasks(_ condition: Statement) -> Statement {
            """
            (SELECT '/manager/FieldTask/' || c.task_id, c.task_id FROM task.copy c
            WHERE c.environment_id = \(environment.rawValue) AND \(condition) AND NOT EXISTS (
                SELECT FROM pipeline.parked p
                WHERE p.group_name = \(Services.taskFanOut.name) AND p.environment_id = \(environment.rawValue)
                    AND p.key = '/manager/FieldTask/' || c.task_id)
            LIMIT \(Int64(countMax)))
            """
        }
        let passed: Statement = "is_due = false AND due_at <= now() AND NOT is_completed AND realm_id IS NOT NULL"
        return Cascade.due(
            group: Services.taskFanOut.name, topic: Topics.task, in: environment,
            """
            SELECT c.key, c.task_id, 'its due date has passed', -1
            FROM (\(tasks(passed)) UNION \(tasks("is_due IS NULL"))) AS c(key, task_id)
            """)
    }

    /// Tasks whose copy or master is past its retention.
    ///
    /// - Parameter countMax: Limit on each.
    static func expired(_ retention: TaskRetention, countMax: Int, in environment: EnvironmentID) -> Statement {
        Cascade.due(
            group: Services.taskFanOut.name, topic: Topics.task, in: environment,
            """
            SELECT '/manager/FieldTask/' || c.task_id, c.task_id, 'its retention has ended', -1
            FROM (
                (SELECT task_id FROM task.copy
                WHERE environment_id = \(environment.rawValue) AND completed_at IS NOT NULL AND realm_id IS NOT NULL
                    AND completed_at < now() - make_interval(secs => \(retention.copies.inSeconds))
                ORDER BY completed_at LIMIT \(Int64(countMax)))
                UNION
                (SELECT task_id FROM task.copy
                WHERE environment_id = \(environment.rawValue) AND completed_at IS NOT NULL AND realm_id IS NULL
                    AND completed_at < now() - make_interval(secs => \(retention.masters.inSeconds))
                ORDER BY completed_at LIMIT \(Int64(countMax)))
            ) c
            """)
    }
}
