import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A row of `task.copy`: the realm of a task's copy, and the base of its three-way merge.
struct TaskRow: Equatable, Sendable {
    /// 0: there is no row.
    var version: Int64 = 0
    /// `nil`: there is no copy.
    var realm: Int32?
    var team: UUID?
    var assignee: UUID?
    var progress = TaskProgress()
    var due = TaskDueState()
    var isCopyExpired = false
    var isMasterExpired = false

    /// Reads the columns version, realm_id, team_id, assignee_id, is_completed, completion_date, completed_by, due_at,
    /// is_due, is copy expired, is master expired. All but the last two are null without a row.
    init(_ columns: inout Columns) throws(PostgresError) {
        version = try columns.optional(Int64.self) ?? 0
        realm = try columns.optional(Int32.self)
        team = try columns.optional(UUID.self)
        assignee = try columns.optional(UUID.self)
        progress = TaskProgress(
            isCompleted: try columns.optional(Bool.self) ?? false, completionDate: try columns.optional(String.self),
            completedBy: try columns.optional(UUID.self))
        due = TaskDueState(
            dueAt: try columns.optional(Timestamp.self), isDue: try columns.optional(Bool.self))
        isCopyExpired = try columns.next()
        isMasterExpired = try columns.next()
    }
}

/// The retention of completed tasks.
struct TaskRetention: Sendable {
    /// Time from the first record of the completion until the copy is removed.
    var copies = Duration.seconds(30 * 86_400)
    /// Time from the first record of the completion until the master is archived.
    var masters = Duration.seconds(400 * 86_400)
}

/// The SQL of `task.copy`, and the reads of `device.task_author`.
enum TaskStore {
    /// Loads tasks: their masters, their rows and, as the rows reference them, their copies, teams, assignees and
    /// memberships. Rows: as ``TaskSnapshot`` reads them.
    static func load(
        _ tasks: some Sequence<UUID>, _ retention: TaskRetention, _ fixedRealms: TaskRealms,
        in environment: EnvironmentID
    ) -> Statement {
        /// Joins an object by its key, if it exists.
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
        let (manager, common): (Statement, Statement) = ("\(fixedRealms.manager)", "\(fixedRealms.common)")
        return """
            SELECT i.id, m.position, m.edit_position, m.fields, c.version, c.realm_id, c.team_id, c.assignee_id,
                c.is_completed, c.completion_date, c.completed_by, c.due_at, c.is_due,
                coalesce(c.completed_at < now() - make_interval(secs => \(retention.copies.inSeconds)), false),
                coalesce(c.completed_at < now() - make_interval(secs => \(retention.masters.inSeconds)), false),
                k.position, k.edit_position, k.fields, t.position, t.deleted, p.position, p.deleted,
                s.position, s.deleted, a.edit_position, a.author_id,
                EXISTS (SELECT FROM task.note n WHERE n.environment_id = \(environment.rawValue) AND n.task_id = i.id)
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
            LEFT JOIN LATERAL (
                SELECT edit_position, author_id FROM device.task_author
                WHERE environment_id = \(environment.rawValue) AND task_id = i.id
                OFFSET 0
            ) a ON true
            """
    }

    /// Removes the authors of processed changes.
    static func removeAuthors(
        _ tasks: [(task: UUID, editPosition: Int64, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        """
        DELETE FROM device.task_author a
        USING unnest(\(tasks.map(\.task)), \(tasks.map(\.editPosition)), \(tasks.map { Int32($0.decision) }))
            AS i(task_id, edit_position, decision)
        WHERE a.environment_id = \(environment.rawValue) AND a.task_id = i.task_id
            AND a.edit_position = i.edit_position AND i.decision <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Finds the members of teams, up to a limit of each. Rows: the team's number from 1 on, the person's id as text.
    ///
    /// It scans all memberships of the environment. The end of a membership's id is that of its team's.
    static func members(
        of teams: [UUID], countMax: Int64, _ fixedRealms: TaskRealms, in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT m.n::int, m.person
        FROM (
            SELECT i.n, o.fields::json->>'person' AS person, row_number() OVER (PARTITION BY i.n ORDER BY o.id) AS rank
            FROM unnest(\(teams.map(Memberships.end(of:))), \(teams.map(\.text))) WITH ORDINALITY AS i(suffix, team, n)
            JOIN store.object o ON right(o.id::text, 17) = i.suffix
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(fixedRealms.common)
                AND o.kind = \(Kind.membership) AND NOT o.deleted AND lower(o.fields::json->>'team') = i.team
        ) m
        WHERE m.rank <= \(countMax) AND m.person IS NOT NULL
        """
    }

    /// Fails the decisions whose rows have changed since they were loaded.
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

    /// Writes rows. The time of the first record of a completion is preserved while the completion is the same.
    static func put(_ rows: [(task: UUID, row: TaskRow, decision: Int)], in environment: EnvironmentID) -> Statement {
        var (realms, dates) = (BinaryArray(of: Int32.self), BinaryArray(of: String.self))
        var (teams, assignees) = (BinaryArray(of: UUID.self), BinaryArray(of: UUID.self))
        var completers = BinaryArray(of: UUID.self)
        var (dueDates, areDue) = (BinaryArray(of: Timestamp.self), BinaryArray(of: Bool.self))
        for row in rows.map(\.row) {
            realms.append(row.realm)
            dates.append(row.progress.completionDate)
            teams.append(row.team)
            assignees.append(row.assignee)
            completers.append(row.progress.completedBy)
            dueDates.append(row.due.dueAt)
            areDue.append(row.due.isDue)
        }
        return """
            INSERT INTO task.copy AS c (environment_id, task_id, version, realm_id, team_id, assignee_id, is_completed,
                completion_date, completed_by, completed_at, due_at, is_due)
            SELECT \(environment.rawValue), i.id, 1, i.realm, i.team, i.assignee, i.is_completed, i.date, i.by,
                CASE WHEN i.is_completed THEN now() END, i.due_at, i.is_due
            FROM unnest(\(rows.map(\.task)), \(realms), \(teams), \(assignees),
                \(rows.map(\.row.progress.isCompleted)), \(dates), \(completers), \(dueDates), \(areDue),
                \(rows.map { Int32($0.decision) }))
                AS i(id, realm, team, assignee, is_completed, date, by, due_at, is_due, decision)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
            ON CONFLICT (environment_id, task_id) DO UPDATE SET
                version = c.version + 1, realm_id = excluded.realm_id, team_id = excluded.team_id,
                assignee_id = excluded.assignee_id, is_completed = excluded.is_completed,
                completion_date = excluded.completion_date, completed_by = excluded.completed_by,
                due_at = excluded.due_at, is_due = excluded.is_due,
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

/// The changes of a batch to rows of `task.copy`.
struct TaskRows {
    /// The row versions that the decisions are based on.
    var versions: [(task: UUID, version: Int64, decision: Int)] = []
    var saved: [(task: UUID, row: TaskRow, decision: Int)] = []
    var deleted: [(task: UUID, decision: Int)] = []
    /// The tasks whose changes are processed, with the position of the last one.
    var processed: [(task: UUID, editPosition: Int64, decision: Int)] = []
    /// The tasks whose notes must follow them.
    var moved: [(task: UUID, decision: Int)] = []

    func write(to batch: inout WriteBatch, in environment: EnvironmentID) {
        if !versions.isEmpty { batch.expect(TaskStore.expect(versions, in: environment)) }
        if !saved.isEmpty { batch.append(TaskStore.put(saved, in: environment)) }
        if !deleted.isEmpty { batch.append(TaskStore.remove(deleted, in: environment)) }
        if !moved.isEmpty { batch.append(TaskCascade.notes(of: moved, in: environment)) }
        if !processed.isEmpty { batch.append(TaskStore.removeAuthors(processed, in: environment)) }
    }
}

/// The stored state of a task, loaded in one query.
struct TaskSnapshot: Sendable {
    /// One of the task's two objects. A tombstone has no fields.
    struct ObjectState: Sendable {
        /// 0: it does not exist, and has no tombstone.
        var position: Int64 = 0
        var editPosition: Int64 = 0
        var fields: CanonicalJSON?

        init(_ columns: inout Columns) throws(PostgresError) {
            position = try columns.optional(Int64.self) ?? 0
            editPosition = try columns.optional(Int64.self) ?? 0
            fields = try columns.optional(CanonicalJSON.self)
        }
    }

    let task: UUID
    let master: ObjectState
    let row: TaskRow
    /// The copy in the row's realm.
    let copy: ObjectState
    /// The team, person and membership that the row references.
    let references: ReferencePresences
    /// The unprocessed changes, if there are any.
    let author: TaskAuthor?
    /// Whether it has notes that were processed.
    let hasNotes: Bool

    /// Reads a row of ``TaskStore/load(_:_:_:in:)``.
    init(_ row: Row) throws(PostgresError) {
        var columns = row.columns
        task = try columns.next()
        master = try ObjectState(&columns)
        self.row = try TaskRow(&columns)
        copy = try ObjectState(&columns)
        references = try ReferencePresences(
            team: Presence(&columns), person: Presence(&columns), membership: Presence(&columns))
        let (editPosition, person) = (try columns.optional(Int64.self), try columns.optional(UUID.self))
        author = editPosition.map { TaskAuthor(editPosition: $0, person: person) }
        hasNotes = try columns.next()
        try columns.end()
    }
}

/// The author of unprocessed changes of a task by people.
struct TaskAuthor: Equatable, Sendable {
    /// The position of the last change.
    let editPosition: Int64
    /// `nil`: several people, or an integration.
    let person: UUID?
}

/// Whether a task's team and its assignee exist, and whether the assignee is in the team.
struct ReferencePresences: Equatable, Sendable {
    var team = Presence()
    var person = Presence()
    var membership = Presence()
}
