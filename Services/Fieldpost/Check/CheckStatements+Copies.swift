import Access
import Model
import Postgres

/// Statements that recompute the objects that services write. Each compares one slice, independently of the services'
/// code. Rows: as ``Inconsistency`` reads them.
extension CheckSlice {
    /// Each task has one copy: in the realm of the team that its master names, otherwise of the assignee.
    var tasks: Statement {
        """
        WITH root AS MATERIALIZED (SELECT \(realm("'/manager'")) AS manager, \(realm("'/common'")) AS common),
        master AS MATERIALIZED (
            SELECT o.id, o.position, o.fields, \(Self.id("team", of: "o.fields")) AS team,
                \(Self.id("assignee", of: "o.fields")) AS assignee, p.common
            FROM root p \(objects(.fieldTask, in: "p.manager"))
        ), actual AS MATERIALIZED (
            SELECT r.path, r.id AS realm_id, o.id, o.position, o.fields
            FROM realm.realm r \(objects(.fieldTask, in: "r.id"))
            WHERE r.environment_id = \(environment.rawValue)
                AND (starts_with(r.path, '/teams/') OR starts_with(r.path, '/users/'))
        ), registered AS MATERIALIZED (
            SELECT * FROM task.copy WHERE environment_id = \(environment.rawValue) AND \(has("task_id"))
        ), resolved AS MATERIALIZED (
            SELECT m.*, \(exists(.team, "m.team", in: "m.common")) AS has_team,
                \(exists(.person, "m.assignee", in: "m.common")) AND (m.team IS NULL
                    OR \(exists(.membership, Self.pair("m.assignee", "m.team"), in: "m.common"))) AS may_do_it
            FROM master m
        ), expected AS MATERIALIZED (
            SELECT n.*, w.path, c.task_id IS NOT NULL AS is_registered, c.realm_id,
                c.completed_at IS NOT NULL AND c.realm_id IS NULL AS is_old
            FROM resolved n LEFT JOIN (\(People.emails(in: environment))) e ON e.object_id = n.assignee
            CROSS JOIN LATERAL (SELECT CASE WHEN n.has_team THEN '/teams/' || n.team
                WHEN n.may_do_it THEN '/users/' || e.email END AS path) w
            LEFT JOIN registered c ON c.task_id = n.id
        )
        SELECT '/manager/FieldTask/' || f.id, f.fault, f.id, f.position FROM (
            SELECT id, position, 'its team does not exist' AS fault FROM expected
            WHERE team IS NOT NULL AND NOT has_team
            UNION ALL
            SELECT id, position, 'its assignee does not exist or is not in its team' FROM expected
            WHERE assignee IS NOT NULL AND NOT may_do_it
            UNION ALL
            SELECT w.id, w.position, 'its copy is not in ' || w.path FROM expected w
            WHERE w.path IS NOT NULL AND NOT w.is_old
                AND NOT EXISTS (SELECT FROM actual h WHERE h.id = w.id AND h.path = w.path)
            UNION ALL
            SELECT h.id, h.position, 'its copy in ' || h.path || ' has different fields'
            FROM actual h JOIN expected w ON w.id = h.id AND w.path = h.path WHERE h.fields IS DISTINCT FROM w.fields
            UNION ALL
            SELECT h.id, h.position, 'a copy is in ' || h.path || ', where none is expected'
            FROM actual h LEFT JOIN expected w ON w.id = h.id
            WHERE w.path IS DISTINCT FROM h.path OR w.is_old
            UNION ALL
            SELECT c.task_id, c.version, 'task.copy has a row of a task that does not exist'
            FROM registered c LEFT JOIN master m ON m.id = c.task_id WHERE m.id IS NULL
            UNION ALL
            SELECT id, position, 'task.copy has no row of it' FROM expected WHERE NOT is_registered
            UNION ALL
            SELECT w.id, w.position, 'task.copy has a different realm' FROM expected w
            WHERE w.is_registered AND NOT w.is_old AND w.realm_id IS DISTINCT FROM \(realm("w.path"))
        ) f LIMIT \(Int64(countMax))
        """
    }

    /// Each position has copies for managers, and for each existing team that the person is in.
    var positions: Statement {
        """
        WITH root AS MATERIALIZED (SELECT \(realm("'/common'")) AS common),
        person AS MATERIALIZED (\(People.emails(in: environment))),
        source AS MATERIALIZED (
            SELECT e.object_id AS id, e.email, p.common, o.position, o.fields
            FROM root p CROSS JOIN person e
            JOIN realm.realm r ON r.environment_id = \(environment.rawValue) AND r.path = '/users/' || e.email
            CROSS JOIN LATERAL (
                SELECT * FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                    AND kind = \(Kind.location) AND id = e.object_id AND NOT deleted
                OFFSET 0
            ) o
            WHERE \(has("e.object_id")) AND \(exists(.person, "e.object_id", in: "p.common"))
        ), expected AS MATERIALIZED (
            SELECT id, position, fields, '/manager' AS path FROM source
            UNION
            SELECT t.id, t.position, t.fields, '/teams/' || m.team
            FROM source t CROSS JOIN LATERAL (
                SELECT \(Self.id("team", of: "m.fields")) AS team FROM store.object m
                WHERE m.environment_id = \(environment.rawValue) AND m.realm_id = t.common
                    AND m.kind = \(Kind.membership) AND NOT m.deleted
                    AND m.id BETWEEN encode(substr(uuid_send(t.id), 1, 8) || '\\x0000000000000000', 'hex')::uuid
                        AND encode(substr(uuid_send(t.id), 1, 8) || '\\xffffffffffffffff', 'hex')::uuid
                    AND \(Self.id("person", of: "m.fields")) = t.id
                OFFSET 0
            ) m
            WHERE \(exists(.team, "m.team", in: "t.common"))
        ), actual AS MATERIALIZED (
            SELECT r.path, o.id, o.position, o.fields
            FROM realm.realm r \(objects(.location, in: "r.id"))
            WHERE r.environment_id = \(environment.rawValue)
                AND (r.path = '/manager' OR starts_with(r.path, '/teams/'))
        )
        SELECT coalesce('/users/' || e.email || '/Location/', '/common/Person/') || f.id, f.fault, f.id, f.position
        FROM (
            SELECT coalesce(w.id, h.id) AS id, coalesce(h.position, w.position) AS position,
                CASE WHEN h.id IS NULL THEN 'its copy is not in ' || w.path
                    WHEN w.id IS NULL THEN 'a copy is in ' || h.path || ', where none is expected'
                    ELSE 'its copy in ' || h.path || ' has different fields' END AS fault
            FROM expected w FULL JOIN actual h ON h.id = w.id AND h.path = w.path
            WHERE w.fields IS DISTINCT FROM h.fields
        ) f LEFT JOIN person e ON e.object_id = f.id LIMIT \(Int64(countMax))
        """
    }

    /// Each item shared with a person who has a realm has a copy, and a share exists between the two people.
    var shares: Statement {
        """
        WITH person AS MATERIALIZED (\(People.emails(in: environment))),
        link AS MATERIALIZED (
            SELECT e.object_id AS owner, e.email, r.id AS realm_id, o.position, o.fields::json->>'problem' AS problem,
                CASE o.fields::json->>'kind' WHEN 'Appointment' THEN \(Kind.appointment) WHEN 'Note' THEN \(Kind.note)
                    END AS kind,
                \(Self.id("item", of: "o.fields")) AS item, \(Self.id("recipient", of: "o.fields")) AS recipient
            FROM person e
            JOIN realm.realm r ON r.environment_id = \(environment.rawValue) AND r.path = '/users/' || e.email
            \(objects(.sharedItem, in: "r.id"))
        ), expected AS MATERIALIZED (
            SELECT l.*, i.fields, s.share, '/shares/' || s.share AS path, q.email AS recipient_email
            FROM link l JOIN person q ON q.object_id = l.recipient AND l.recipient <> l.owner
            CROSS JOIN LATERAL (SELECT \(Self.pair("l.owner", "l.recipient")) AS share) s
            CROSS JOIN LATERAL (
                SELECT fields FROM store.object WHERE environment_id = \(environment.rawValue)
                    AND realm_id = l.realm_id AND kind = l.kind AND id = l.item AND NOT deleted
                OFFSET 0
            ) i
            WHERE l.problem IS NULL
        ), actual AS MATERIALIZED (
            SELECT r.path, substr(r.path, 9)::uuid AS share, o.kind, o.id, o.position, o.fields
            FROM realm.realm r \(objects([.appointment, .note], in: "r.id"))
            WHERE r.environment_id = \(environment.rawValue) AND starts_with(r.path, '/shares/')
        ), fault AS (
            SELECT coalesce(w.item, h.id) AS item, coalesce(w.share, h.share) AS share,
                coalesce(h.position, w.position) AS position,
                CASE WHEN h.id IS NULL THEN 'its copy is not in ' || w.path
                    WHEN w.item IS NULL THEN 'a copy is in ' || h.path || ', where none is expected'
                    ELSE 'its copy in ' || h.path || ' has different fields' END AS fault
            FROM expected w FULL JOIN actual h ON h.path = w.path AND h.kind = w.kind AND h.id = w.item
            WHERE w.fields IS DISTINCT FROM h.fields
            UNION ALL
            SELECT w.item, w.share, w.position, 'there is no Share in ' || p.path
            FROM expected w
            CROSS JOIN LATERAL (VALUES (w.path), ('/users/' || w.email), ('/users/' || w.recipient_email)) AS p(path)
            WHERE NOT \(exists(.share, "w.share", in: realm("p.path")))
        )
        SELECT coalesce('/users/' || e.email, '/shares/' || f.share) || '/SharedItem/' || i.id, f.fault, i.id,
            f.position
        FROM fault f CROSS JOIN LATERAL (SELECT \(Self.pair("f.item", "f.share")) AS id) i
        LEFT JOIN LATERAL (
            SELECT email FROM person
            WHERE substr(uuid_send(object_id), 1, 8) = substr(uuid_send(f.share), 1, 8) LIMIT 1
        ) e ON true
        LIMIT \(Int64(countMax))
        """
    }

    /// Each membership refers to an existing person and team, and its id is derived from them.
    var memberships: Statement {
        """
        SELECT '/common/Membership/' || o.id, CASE
                WHEN m.person IS NULL OR m.team IS NULL THEN 'it does not name a person and a team'
                WHEN o.id <> m.pair THEN 'its id is not ' || m.pair || ', derived from its person and team'
                WHEN m.no_person THEN 'its person ' || m.person || ' was removed'
                WHEN m.no_team THEN 'its team ' || m.team || ' was removed'
                WHEN m.no_person IS NULL THEN 'its person ' || m.person || ' does not exist, not even as a tombstone'
                ELSE 'its team ' || m.team || ' does not exist, not even as a tombstone' END, o.id, o.position
        FROM (SELECT \(realm("'/common'")) AS common) p \(objects(.membership, in: "p.common"))
        CROSS JOIN LATERAL (
            SELECT i.*, \(Self.pair("i.person", "i.team")) AS pair,
                \(isDeleted(.person, "i.person", in: "p.common")) AS no_person,
                \(isDeleted(.team, "i.team", in: "p.common")) AS no_team
            FROM (SELECT \(Self.id("person", of: "o.fields")) AS person, \(Self.id("team", of: "o.fields")) AS team) i
        ) m
        WHERE m.pair IS DISTINCT FROM o.id OR m.no_person IS DISTINCT FROM false
            OR m.no_team IS DISTINCT FROM false
        LIMIT \(Int64(countMax))
        """
    }
}
