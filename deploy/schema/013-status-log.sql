-- The newest line of an entry's status log tells the entry's status, always: entries from before whose log does not
-- say so get a line.

WITH newest AS (
    SELECT DISTINCT ON (environment_id, realm_id, fields->>'entry') environment_id, realm_id,
        fields->>'entry' AS entry, fields->>'status' AS status, fields->>'timestamp' AS written_at
    FROM realm.object
    WHERE kind = 'TimeEntryStatus' AND NOT deleted
    ORDER BY environment_id, realm_id, fields->>'entry', fields->>'timestamp' DESC, position DESC
), silent AS (
    SELECT o.environment_id, o.realm_id, o.id, coalesce(o.fields->>'status', 'draft') AS status,
        to_char(greatest(now(), n.written_at::timestamptz + interval '1 millisecond') AT TIME ZONE 'UTC',
            'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS written_at,
        row_number() OVER (PARTITION BY o.environment_id ORDER BY o.realm_id, o.id) AS n
    FROM realm.object o
    LEFT JOIN newest n ON n.environment_id = o.environment_id AND n.realm_id = o.realm_id AND n.entry = o.id::text
    WHERE o.kind = 'TimeEntry' AND NOT o.deleted
        AND n.status IS DISTINCT FROM coalesce(o.fields->>'status', 'draft')
), counted AS (
    UPDATE realm.environment e SET position = e.position + 2 * s.count
    FROM (SELECT environment_id, count(*) AS count FROM silent GROUP BY environment_id) s
    WHERE e.id = s.environment_id
    RETURNING e.id, e.position - 2 * s.count AS base
), lines AS (
    INSERT INTO realm.object
        (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
    SELECT s.environment_id, s.realm_id, 'TimeEntryStatus', gen_random_uuid(), c.base + 2 * s.n - 1, 0, 0, false,
        jsonb_build_object('entry', s.id, 'status', s.status, 'timestamp', s.written_at)
    FROM silent s JOIN counted c ON c.id = s.environment_id
    RETURNING environment_id, realm_id, kind, id, position
), entries AS (
    UPDATE realm.object o SET position = c.base + 2 * s.n,
        fields = o.fields || jsonb_build_object('status', s.status, 'statusAt', s.written_at)
    FROM silent s JOIN counted c ON c.id = s.environment_id
    WHERE o.environment_id = s.environment_id AND o.realm_id = s.realm_id AND o.kind = 'TimeEntry' AND o.id = s.id
    RETURNING o.environment_id, o.realm_id, o.kind, o.id, o.position
)
INSERT INTO realm.change (environment_id, position, realm_id, kind, id)
SELECT environment_id, position, realm_id, kind, id FROM lines
UNION ALL SELECT environment_id, position, realm_id, kind, id FROM entries;
