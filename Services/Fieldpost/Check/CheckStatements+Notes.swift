import Model
import Postgres

extension CheckSlice {
    /// Each note of a task is in `/manager` and in the realm of the task's copy, and `task.note` has that realm.
    var notes: Statement {
        """
        WITH root AS MATERIALIZED (SELECT \(realm("'/manager'")) AS manager),
        master AS MATERIALIZED (
            SELECT o.id, o.position, o.fields, \(Self.id("task", of: "o.fields")) AS task
            FROM root p \(objects(.taskNote, in: "p.manager"))
        ), actual AS MATERIALIZED (
            SELECT r.path, r.id AS realm_id, o.id, o.position, o.fields
            FROM realm.realm r \(objects(.taskNote, in: "r.id"))
            WHERE r.environment_id = \(environment.rawValue)
                AND (starts_with(r.path, '/teams/') OR starts_with(r.path, '/users/'))
        ), registered AS MATERIALIZED (
            SELECT * FROM task.note WHERE environment_id = \(environment.rawValue) AND \(has("note_id"))
        ), expected AS MATERIALIZED (
            SELECT m.*, c.realm_id, c.task_id IS NOT NULL AS is_known, n.note_id IS NOT NULL AS is_registered,
                n.realm_id AS registered_realm_id
            FROM master m LEFT JOIN registered n ON n.note_id = m.id
            LEFT JOIN task.copy c ON c.environment_id = \(environment.rawValue) AND c.task_id = m.task
        )
        SELECT f.realm || '/TaskNote/' || f.id, f.fault, f.id, f.position FROM (
            SELECT '/manager' AS realm, id, position, 'task.note has no row of it' AS fault FROM expected
            WHERE is_known AND NOT is_registered
            UNION ALL
            SELECT '/manager', id, position, 'task.note has a different realm' FROM expected
            WHERE is_registered AND registered_realm_id IS DISTINCT FROM realm_id
            UNION ALL
            SELECT '/manager', e.id, e.position, 'its copy is not in the realm of its task' FROM expected e
            WHERE e.realm_id IS NOT NULL
                AND NOT EXISTS (SELECT FROM actual h WHERE h.id = e.id AND h.realm_id = e.realm_id)
            UNION ALL
            SELECT '/manager', h.id, h.position, 'its copy in ' || h.path || ' has different fields'
            FROM actual h JOIN expected e ON e.id = h.id AND e.realm_id = h.realm_id
            WHERE h.fields IS DISTINCT FROM e.fields
            UNION ALL
            SELECT h.path, h.id, h.position, 'it is not expected in this realm'
            FROM actual h LEFT JOIN expected e ON e.id = h.id WHERE e.realm_id IS DISTINCT FROM h.realm_id
            UNION ALL
            SELECT '/manager', n.note_id, n.version, 'task.note has a row of a note that does not exist'
            FROM registered n LEFT JOIN master m ON m.id = n.note_id WHERE m.id IS NULL
        ) f LIMIT \(Int64(countMax))
        """
    }
}
