import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// A row of `task.note`: the task of a note, and the realm of its copy.
struct NoteRow: Equatable, Sendable {
    let version: Int64
    let task: UUID
    /// `nil`: there is no copy.
    let realm: Int32?
    let isOverLimit: Bool
}

/// The SQL of `task.note`.
enum NoteStore {
    /// Loads the rows of notes. Rows: note, version, task, realm, whether it is over the limit of its task.
    static func load(_ notes: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT n.note_id, n.version, n.task_id, n.realm_id, \(newerCount("n", in: environment)) >= \(countMax)
        FROM unnest(\(notes)) AS i(id) CROSS JOIN LATERAL (
            SELECT * FROM task.note n WHERE n.environment_id = \(environment.rawValue) AND n.note_id = i.id
            OFFSET 0
        ) n
        """
    }

    static func rows(_ rows: Rows) throws(PostgresError) -> [UUID: NoteRow] {
        var found: [UUID: NoteRow] = [:]
        for row in rows {
            var columns = row.columns
            let note: UUID = try columns.next()
            found[note] = NoteRow(
                version: try columns.next(), task: try columns.next(), realm: try columns.optional(Int32.self),
                isOverLimit: try columns.next())
        }
        return found
    }

    private static let countMax = Int64(TaskNote.countMax)

    /// The number of a task's notes that are newer than `row`, up to the limit.
    private static func newerCount(_ row: Statement, in environment: EnvironmentID) -> Statement {
        """
        (SELECT count(*) FROM (
            SELECT FROM task.note o
            WHERE o.environment_id = \(environment.rawValue) AND o.task_id = \(row).task_id
                AND o.position > \(row).position
            LIMIT \(countMax)
        ) AS newer)
        """
    }

    /// Loads the rows of tasks' copies and the number of their notes. Rows: task, version, realm, count.
    static func loadTasks(_ tasks: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT i.id, coalesce(c.version, 0), c.realm_id, (
            SELECT count(*) FROM task.note n
            WHERE n.environment_id = \(environment.rawValue) AND n.task_id = i.id)
        FROM unnest(\(tasks)) AS i(id) LEFT JOIN LATERAL (
            SELECT c.version, c.realm_id FROM task.copy c
            WHERE c.environment_id = \(environment.rawValue) AND c.task_id = i.id
            OFFSET 0
        ) c ON true
        """
    }

    /// Fails the decisions whose rows have changed since they were loaded.
    static func expect(
        _ rows: [(note: UUID, version: Int64, isOverLimit: Bool, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT realm.miss(array_agg(DISTINCT g.decision))
        FROM unnest(\(rows.map(\.note)), \(rows.map(\.version)), \(rows.map(\.isOverLimit)),
            \(rows.map { Int32($0.decision) })) AS g(id, version, is_over, decision)
        LEFT JOIN LATERAL (
            SELECT * FROM task.note n WHERE n.environment_id = \(environment.rawValue) AND n.note_id = g.id
            OFFSET 0
        ) n ON true
        WHERE coalesce(n.version, 0) <> g.version
            OR g.is_over AND \(newerCount("n", in: environment)) < \(countMax)
        """
    }

    static func put(
        _ notes: [(note: UUID, task: UUID, realm: Int32?, position: Int64, decision: Int)],
        in environment: EnvironmentID
    ) -> Statement {
        var realms = BinaryArray(of: Int32.self)
        for note in notes { realms.append(note.realm) }
        return """
            INSERT INTO task.note AS n (environment_id, note_id, version, task_id, realm_id, position)
            SELECT \(environment.rawValue), i.id, 1, i.task, i.realm, i.position
            FROM unnest(\(notes.map(\.note)), \(notes.map(\.task)), \(realms), \(notes.map(\.position)),
                \(notes.map { Int32($0.decision) })) AS i(id, task, realm, position, decision)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
            ON CONFLICT (environment_id, note_id) DO UPDATE SET version = n.version + 1, realm_id = excluded.realm_id
            """
    }

    static func remove(_ notes: [(note: UUID, decision: Int)], in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM task.note WHERE ctid = ANY (ARRAY(
            SELECT n.ctid
            FROM unnest(\(notes.map(\.note)), \(notes.map { Int32($0.decision) })) AS i(id, decision)
            CROSS JOIN LATERAL (
                SELECT n.ctid FROM task.note n
                WHERE n.environment_id = \(environment.rawValue) AND n.note_id = i.id
                OFFSET 0
            ) n
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])))
        """
    }
}

extension TaskCascade {
    /// The notes of tasks whose copy moved, or that were deleted or archived.
    static func notes(of tasks: [(task: UUID, decision: Int)], in environment: EnvironmentID) -> Statement {
        notes(of: tasks, offset: 0, reason: "its task was moved or deleted", in: environment)
    }

    /// The oldest notes of tasks that have more than the limit.
    static func notesOverLimit(of tasks: [(task: UUID, decision: Int)], in environment: EnvironmentID) -> Statement {
        notes(of: tasks, offset: TaskNote.countMax, reason: "its task has too many notes", in: environment)
    }

    private static func notes(
        of tasks: [(task: UUID, decision: Int)], offset: Int, reason: String, in environment: EnvironmentID
    ) -> Statement {
        Cascade.due(
            group: Services.taskFanOut.name, topic: Topics.task, in: environment,
            """
            SELECT '/manager/TaskNote/' || n.note_id, n.note_id, \(reason), i.decision
            FROM unnest(\(tasks.map(\.task)), \(tasks.map { Int32($0.decision) })) AS i(task_id, decision)
            CROSS JOIN LATERAL (
                SELECT n.note_id FROM task.note n
                WHERE n.environment_id = \(environment.rawValue) AND n.task_id = i.task_id
                ORDER BY n.position DESC OFFSET \(Int64(offset))
            ) n
            """)
    }
}
