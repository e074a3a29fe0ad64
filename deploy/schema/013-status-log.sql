-- The newest line of an entry's status log tells the entry's status, always, and the entry holds its time: entries from
-- before get both. Their log gets a line where it says another status, or nothing.

-- What is read below is what there is until the end: nobody writes objects meanwhile.
SELECT FROM realm.environment ORDER BY id FOR UPDATE;

WITH newest AS (
    SELECT DISTINCT ON (environment_id, realm_id, lower(fields->>'entry')) environment_id, realm_id,
        lower(fields->>'entry') AS entry, fields->>'status' AS status,
        (fields->>'timestamp')::timestamptz AS written_at
    FROM realm.object
    WHERE kind = 'TimeEntryStatus' AND NOT deleted
    ORDER BY environment_id, realm_id, lower(fields->>'entry'), (fields->>'timestamp')::timestamptz DESC,
        position DESC
), found AS (
    SELECT o.environment_id, o.realm_id, o.id, coalesce(o.fields->>'status', 'draft') AS status, n.written_at,
        n.status IS DISTINCT FROM coalesce(o.fields->>'status', 'draft') AS is_silent
    FROM realm.object o
    LEFT JOIN newest n ON n.environment_id = o.environment_id AND n.realm_id = o.realm_id AND n.entry = o.id::text
    WHERE o.kind = 'TimeEntry' AND NOT o.deleted
), old AS (
    SELECT *,
        to_char(
            CASE WHEN is_silent THEN greatest(now(), written_at + interval '1 millisecond') ELSE written_at END
                AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS status_at,
        row_number() OVER (PARTITION BY environment_id ORDER BY realm_id, id) AS n
    FROM found
), counted AS (
    UPDATE realm.environment e SET position = e.position + 2 * o.count
    FROM (SELECT environment_id, count(*) AS count FROM old GROUP BY environment_id) o
    WHERE e.id = o.environment_id
    RETURNING e.id, e.position - 2 * o.count AS base
), lines AS (
    INSERT INTO realm.object
        (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
    SELECT o.environment_id, o.realm_id, 'TimeEntryStatus', gen_random_uuid(), c.base + 2 * o.n - 1, 0, 0, false,
        jsonb_build_object('entry', o.id, 'status', o.status, 'timestamp', o.status_at)
    FROM old o JOIN counted c ON c.id = o.environment_id
    WHERE o.is_silent
    RETURNING environment_id, realm_id, kind, id, position
), entries AS (
    UPDATE realm.object e SET position = c.base + 2 * o.n,
        fields = e.fields || jsonb_build_object('status', o.status, 'statusAt', o.status_at)
    FROM old o JOIN counted c ON c.id = o.environment_id
    WHERE e.environment_id = o.environment_id AND e.realm_id = o.realm_id AND e.kind = 'TimeEntry' AND e.id = o.id
    RETURNING e.environment_id, e.realm_id, e.kind, e.id, e.position
)
INSERT INTO realm.change (environment_id, position, realm_id, kind, id)
SELECT environment_id, position, realm_id, kind, id FROM lines
UNION ALL SELECT environment_id, position, realm_id, kind, id FROM entries;
