import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Which tasks are decided anew when something else has changed, or with time.
enum TaskCascade {
    /// The tasks that name teams, memberships or people that are gone, as the decisions saw it.
    ///
    /// A membership's tombstone has no fields. Its id says all: the first half of the person's, the last of the team's.
    static func tasks(
        naming gone: [(key: ObjectKey, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        let ranges = gone.map { Membership.ids(of: $0.key.id) }
        return Cascade.due(
            group: Services.taskFanOut.name, topic: Topics.task, in: environment,
            """
            SELECT '/manager/FieldTask/' || c.task_id, c.task_id, c.reason, g.decision
            FROM unnest(\(gone.map(\.key.kind)), \(gone.map(\.key.id)), \(ranges.map(\.lowerBound)),
                \(ranges.map(\.upperBound)), \(gone.map { Int32($0.decision) })) AS g(kind, id, low, high, decision)
            CROSS JOIN LATERAL (
                SELECT c.task_id, 'its team is gone' FROM task.copy c
                WHERE g.kind = \(Kind.team) AND c.environment_id = \(environment.rawValue) AND c.team_id = g.id
                UNION ALL
                SELECT c.task_id, 'its assignee is gone' FROM task.copy c
                WHERE g.kind = \(Kind.person) AND c.environment_id = \(environment.rawValue)
                    AND c.assignee_id = g.id
                UNION ALL
                SELECT c.task_id, 'its assignee left the team' FROM task.copy c
                WHERE g.kind = \(Kind.membership) AND c.environment_id = \(environment.rawValue)
                    AND c.assignee_id BETWEEN g.low AND g.high
                    AND substr(uuid_send(c.team_id), 9) = substr(uuid_send(g.id), 9)
                OFFSET 0
            ) AS c(task_id, reason)
            """)
    }

    /// Memberships of deleted teams and people.
    static func memberships(_ left: [(id: UUID, decision: Int)], in environment: EnvironmentID) -> Statement {
        Cascade.due(
            group: Services.taskFanOut.name, topic: Topics.team, in: environment,
            """
            SELECT '/common/Membership/' || i.id, i.id, 'its team or its person is gone', i.decision
            FROM unnest(\(left.map(\.id)), \(left.map { Int32($0.decision) })) AS i(id, decision)
            """)
    }

    /// The tasks that were completed so long ago that their copy goes, or their master to the archive.
    ///
    /// - Parameter countMax: The most of each.
    static func old(_ keep: KeepLimits, countMax: Int, in environment: EnvironmentID) -> Statement {
        Cascade.due(
            group: Services.taskFanOut.name, topic: Topics.task, in: environment,
            """
            SELECT '/manager/FieldTask/' || c.task_id, c.task_id, 'it was completed long ago', -1
            FROM (
                (SELECT task_id FROM task.copy
                WHERE environment_id = \(environment.rawValue) AND completed_at IS NOT NULL AND realm_id IS NOT NULL
                    AND completed_at < now() - make_interval(secs => \(keep.copies.inSeconds))
                ORDER BY completed_at LIMIT \(Int64(countMax)))
                UNION
                (SELECT task_id FROM task.copy
                WHERE environment_id = \(environment.rawValue) AND completed_at IS NOT NULL AND realm_id IS NULL
                    AND completed_at < now() - make_interval(secs => \(keep.masters.inSeconds))
                ORDER BY completed_at LIMIT \(Int64(countMax)))
            ) c
            """)
    }
}
