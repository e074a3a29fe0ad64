import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A row of `task.copy`: where a task's copy is, and what both sides agreed on last.
struct TaskRow: Equatable, Sendable {
    /// 0: there is no row.
    var version: Int64 = 0
    /// `nil`: there is no copy.
    var realm: Int32?
    var team: UUID?
    var assignee: UUID?
    var progress = TaskProgress()
    var isOld = false
    var isVeryOld = false

    /// Reads the columns version, realm_id, team_id, assignee_id, is_completed, completion_date, completed_by, is old,
    /// is very old; the first seven are null where there is no row.
    init(_ columns: inout Columns) throws(PostgresError) {
        version = try columns.optional(Int64.self) ?? 0
        realm = try columns.optional(Int32.self)
        team = try columns.optional(UUID.self)
        assignee = try columns.optional(UUID.self)
        progress = TaskProgress(
            isCompleted: try columns.optional(Bool.self) ?? false, completionDate: try columns.optional(String.self),
            completedBy: try columns.optional(UUID.self))
        isOld = try columns.next()
        isVeryOld = try columns.next()
    }
}

/// From when on completed tasks are out of the way.
struct KeepLimits: Sendable {
    /// A copy goes so long after the completion was heard of.
    var copies = Duration.seconds(30 * 86_400)
    /// A master moves to the archive so long after the completion was heard of.
    var masters = Duration.seconds(400 * 86_400)
}

/// The SQL of `task.copy`.
enum TaskStore {
    /// Reads tasks: their masters, their rows and, as the rows name them, their copies, teams, assignees and these
    /// people's memberships. Rows: as ``FoundTask`` reads them.
    static func load(
        _ tasks: some Sequence<UUID>, _ keep: KeepLimits, _ places: TaskPlaces, in environment: EnvironmentID
    ) -> Statement {
        /// Joins an object, if there is one, under its key.
        func object(_ columns: Statement, _ realm: Statement, _ kind: Kind, _ id: Statement) -> Statement {
            """
            LEFT JOIN LATERAL (
                SELECT \(columns) FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(realm) AND o.kind = \(kind)
                    AND o.id = \(id)
                OFFSET 0
            )
            """
        }
        let (stored, presence): (Statement, Statement) = ("position, edit_position, fields", "position, deleted")
        let (manager, common): (Statement, Statement) = ("\(places.manager)", "\(places.common)")
        return """
            SELECT i.id, m.position, m.edit_position, m.fields, c.version, c.realm_id, c.team_id, c.assignee_id,
                c.is_completed, c.completion_date, c.completed_by,
                coalesce(c.completed_at < now() - make_interval(secs => \(keep.copies.inSeconds)), false),
                coalesce(c.completed_at < now() - make_interval(secs => \(keep.masters.inSeconds)), false),
                k.position, k.edit_position, k.fields, t.position, t.deleted, p.position, p.deleted,
                s.position, s.deleted
            FROM unnest(\(Array(tasks))) AS i(id)
            \(object(stored, manager, .fieldTask, "i.id")) m ON true
            LEFT JOIN LATERAL (
                SELECT c.*, encode(
                    substr(uuid_send(c.assignee_id), 1, 8) || substr(uuid_send(c.team_id), 9), 'hex')::uuid AS member_id
                FROM task.copy c
                WHERE c.environment_id = \(environment.rawValue) AND c.task_id = i.id
                OFFSET 0
            ) c ON true
            \(object(stored, "c.realm_id", .fieldTask, "i.id")) k ON true
            \(object(presence, common, .team, "c.team_id")) t ON true
            \(object(presence, common, .person, "c.assignee_id")) p ON true
            \(object(presence, common, .membership, "c.member_id")) s ON true
            """
    }

    /// Misses the decisions whose rows have changed since they were loaded.
    static func expect(
        _ rows: [(task: UUID, version: Int64, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT realm.miss(array_agg(DISTINCT g.decision))
        FROM unnest(\(rows.map(\.task)), \(rows.map(\.version)), \(rows.map { Int32($0.decision) }))
            AS g(id, version, decision)
        LEFT JOIN LATERAL (
            SELECT c.version FROM task.copy c
            WHERE c.environment_id = \(environment.rawValue) AND c.task_id = g.id
            OFFSET 0
        ) c ON true
        WHERE coalesce(c.version, 0) <> g.version
        """
    }

    /// Writes rows. When a completion was heard of is kept as long as it is the same one.
    static func put(_ rows: [(task: UUID, row: TaskRow, decision: Int)], in environment: EnvironmentID) -> Statement {
        var (realms, dates) = (BinaryArray(of: Int32.self), BinaryArray(of: String.self))
        var (teams, assignees) = (BinaryArray(of: UUID.self), BinaryArray(of: UUID.self))
        var doers = BinaryArray(of: UUID.self)
        for row in rows.map(\.row) {
            realms.append(row.realm)
            dates.append(row.progress.completionDate)
            teams.append(row.team)
            assignees.append(row.assignee)
            doers.append(row.progress.completedBy)
        }
        return """
            INSERT INTO task.copy AS c (environment_id, task_id, version, realm_id, team_id, assignee_id, is_completed,
                completion_date, completed_by, completed_at)
            SELECT \(environment.rawValue), i.id, 1, i.realm, i.team, i.assignee, i.is_completed, i.date, i.by,
                CASE WHEN i.is_completed THEN now() END
            FROM unnest(\(rows.map(\.task)), \(realms), \(teams), \(assignees),
                \(rows.map(\.row.progress.isCompleted)), \(dates), \(doers), \(rows.map { Int32($0.decision) }))
                AS i(id, realm, team, assignee, is_completed, date, by, decision)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
            ON CONFLICT (environment_id, task_id) DO UPDATE SET
                version = c.version + 1, realm_id = excluded.realm_id, team_id = excluded.team_id,
                assignee_id = excluded.assignee_id, is_completed = excluded.is_completed,
                completion_date = excluded.completion_date, completed_by = excluded.completed_by,
                completed_at = CASE WHEN excluded.is_completed THEN
                    CASE WHEN c.completion_date IS NOT DISTINCT FROM excluded.completion_date
                            AND c.completed_by IS NOT DISTINCT FROM excluded.completed_by
                        THEN coalesce(c.completed_at, now()) ELSE now() END
                    END
            """
    }

    static func remove(_ tasks: [(task: UUID, decision: Int)], in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM task.copy WHERE ctid = ANY (ARRAY(
            SELECT c.ctid
            FROM unnest(\(tasks.map(\.task)), \(tasks.map { Int32($0.decision) })) AS i(id, decision)
            CROSS JOIN LATERAL (
                SELECT c.ctid FROM task.copy c
                WHERE c.environment_id = \(environment.rawValue) AND c.task_id = i.id
                OFFSET 0
            ) c
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])))
        """
    }
}

/// What a batch does with rows of `task.copy`.
struct TaskRows {
    /// What each decision was made from.
    var versions: [(task: UUID, version: Int64, decision: Int)] = []
    var kept: [(task: UUID, row: TaskRow, decision: Int)] = []
    var gone: [(task: UUID, decision: Int)] = []

    func write(to batch: inout WriteBatch, in environment: EnvironmentID) {
        if !versions.isEmpty { batch.expect(TaskStore.expect(versions, in: environment)) }
        if !kept.isEmpty { batch.also(TaskStore.put(kept, in: environment)) }
        if !gone.isEmpty { batch.also(TaskStore.remove(gone, in: environment)) }
    }
}
