-- Objects and changes in another form: fields as text, so that PostgreSQL need not take JSON apart and put it together
-- again, and kinds as numbers. This form and the one before are kept side by side, by triggers, until no service of the
-- release before is left: see 017 and 018.

-- A vacuum goes out of the way of who waits for a second. Nobody waits behind this lock meanwhile; behind those that
-- the triggers take, writers do.
SET LOCAL lock_timeout = '60s';
LOCK TABLE realm.object, realm.change IN SHARE UPDATE EXCLUSIVE MODE;
SET LOCAL lock_timeout = '200ms';

-- The kinds' numbers. They are in the order of the names, as pages are and cursors of before say; a later kind takes
-- the next number. `fieldpost migrate` adds the kinds it knows.
CREATE TABLE realm.kind (
    number  smallint PRIMARY KEY CHECK (number > 0),
    name    text COLLATE "C" NOT NULL UNIQUE
);
INSERT INTO realm.kind (number, name) VALUES
    (1, 'FieldTask'), (2, 'Location'), (3, 'Membership'), (4, 'Person'), (5, 'PersonLookup'), (6, 'Poll'),
    (7, 'Realms'), (8, 'ReportingContext'), (9, 'ReportingTemplate'), (10, 'ReportingTreeNode'), (11, 'SeenRecord'),
    (12, 'Share'), (13, 'Team'), (14, 'TimeEntry'), (15, 'TimeEntryStatus'), (16, 'User');

CREATE SCHEMA store;

-- One row per object, its latest state. No other index, and room on each page: an update stays heap-only.
-- A tombstone has no fields. Fields are one JSON object in the form in which `jsonb` is written as text: what says the
-- same has the same bytes.
CREATE TABLE store.object (
    environment_id   int NOT NULL,
    realm_id         int NOT NULL,
    kind             smallint NOT NULL,
    deleted          boolean NOT NULL,
    id               uuid NOT NULL,
    position         bigint NOT NULL,
    source_position  bigint NOT NULL,
    edit_position    bigint NOT NULL,
    fields           text,
    PRIMARY KEY (environment_id, realm_id, kind, id)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.1);

-- Pointers in position order. One whose object has moved on since is skipped by its readers.
CREATE TABLE store.change (
    environment_id  int NOT NULL,
    realm_id        int NOT NULL,
    position        bigint NOT NULL,
    changed_at      timestamptz NOT NULL DEFAULT now(),
    kind            smallint NOT NULL,
    id              uuid NOT NULL,
    traceparent     text,
    PRIMARY KEY (environment_id, position)
);

-- What one release writes, the other finds. Whoever writes objects holds the lock of the environment's counter, so one
-- change follows the other. What a trigger writes, or the copying of what was there before, is not given back (`WHEN`).
-- Services may have no rights on the other form's tables: the functions have those of who migrates.

CREATE FUNCTION store.take_object() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM store.object o USING realm.kind k
        WHERE k.name = OLD.kind AND o.environment_id = OLD.environment_id AND o.realm_id = OLD.realm_id
            AND o.kind = k.number AND o.id = OLD.id;
        RETURN NULL;
    END IF;
    INSERT INTO store.object
        (environment_id, realm_id, kind, deleted, id, position, source_position, edit_position, fields)
    SELECT NEW.environment_id, NEW.realm_id, (SELECT number FROM realm.kind WHERE name = NEW.kind), NEW.deleted,
        NEW.id, NEW.position, NEW.source_position, NEW.edit_position, NEW.fields::text
    ON CONFLICT (environment_id, realm_id, kind, id) DO UPDATE SET
        deleted = excluded.deleted, position = excluded.position, source_position = excluded.source_position,
        edit_position = excluded.edit_position, fields = excluded.fields;
    RETURN NULL;
END
$$;

CREATE FUNCTION store.give_object() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM realm.object o USING realm.kind k
        WHERE k.number = OLD.kind AND o.environment_id = OLD.environment_id AND o.realm_id = OLD.realm_id
            AND o.kind = k.name AND o.id = OLD.id;
        RETURN NULL;
    END IF;
    INSERT INTO realm.object
        (environment_id, realm_id, kind, id, position, source_position, edit_position, deleted, fields)
    SELECT NEW.environment_id, NEW.realm_id, (SELECT name FROM realm.kind WHERE number = NEW.kind), NEW.id,
        NEW.position, NEW.source_position, NEW.edit_position, NEW.deleted, NEW.fields::jsonb
    ON CONFLICT (environment_id, realm_id, kind, id) DO UPDATE SET
        deleted = excluded.deleted, position = excluded.position, source_position = excluded.source_position,
        edit_position = excluded.edit_position, fields = excluded.fields;
    RETURN NULL;
END
$$;

CREATE FUNCTION store.take_change() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM store.change WHERE environment_id = OLD.environment_id AND position = OLD.position;
        RETURN NULL;
    END IF;
    INSERT INTO store.change (environment_id, realm_id, position, changed_at, kind, id, traceparent)
    SELECT NEW.environment_id, NEW.realm_id, NEW.position, NEW.changed_at,
        (SELECT number FROM realm.kind WHERE name = NEW.kind), NEW.id, NEW.traceparent;
    RETURN NULL;
END
$$;

CREATE FUNCTION store.give_change() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM realm.change WHERE environment_id = OLD.environment_id AND position = OLD.position;
        RETURN NULL;
    END IF;
    INSERT INTO realm.change (environment_id, position, realm_id, kind, id, traceparent, changed_at)
    SELECT NEW.environment_id, NEW.position, NEW.realm_id, (SELECT name FROM realm.kind WHERE number = NEW.kind),
        NEW.id, NEW.traceparent, NEW.changed_at;
    RETURN NULL;
END
$$;

CREATE TRIGGER take AFTER INSERT OR UPDATE OR DELETE ON realm.object
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION store.take_object();
CREATE TRIGGER give AFTER INSERT OR UPDATE OR DELETE ON store.object
    FOR EACH ROW WHEN (pg_trigger_depth() = 0 AND current_setting('fieldpost.copying', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION store.give_object();
CREATE TRIGGER take AFTER INSERT OR DELETE ON realm.change
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION store.take_change();
CREATE TRIGGER give AFTER INSERT OR DELETE ON store.change
    FOR EACH ROW WHEN (pg_trigger_depth() = 0 AND current_setting('fieldpost.copying', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION store.give_change();

-- How far what was there before is copied; environments that come later are whole by the triggers alone.
CREATE TABLE store.copying (
    environment_id  int PRIMARY KEY REFERENCES realm.environment,
    realm_id        int NOT NULL DEFAULT 0,
    kind            text COLLATE "C" NOT NULL DEFAULT '',
    id              uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    position        bigint NOT NULL DEFAULT 0,
    has_objects     boolean NOT NULL DEFAULT false,
    has_changes     boolean NOT NULL DEFAULT false,
    copied          bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO store.copying (environment_id) SELECT id FROM realm.environment;

-- One step, of some 30 ms: what it copies nobody writes meanwhile, since it holds the counter's lock, and nobody
-- removes. Rows: copied so far, of about how many; none when there is nothing left.
CREATE FUNCTION store.copy_some() RETURNS TABLE (done bigint, total bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    began timestamptz;
    place store.copying;
    taken int;
BEGIN
    SELECT * INTO place FROM store.copying WHERE NOT (has_objects AND has_changes) ORDER BY environment_id LIMIT 1;
    IF NOT FOUND THEN RETURN; END IF;
    PERFORM set_config('fieldpost.copying', 'on', true);
    PERFORM FROM realm.environment WHERE id = place.environment_id FOR NO KEY UPDATE;
    began := clock_timestamp();
    WHILE NOT place.has_objects AND clock_timestamp() < began + interval '30 ms' LOOP
        WITH found AS MATERIALIZED (
            SELECT * FROM realm.object
            WHERE environment_id = place.environment_id
                AND (realm_id, kind, id) > (place.realm_id, place.kind, place.id)
            ORDER BY realm_id, kind, id LIMIT 500 FOR KEY SHARE
        ), put AS (
            INSERT INTO store.object
                (environment_id, realm_id, kind, deleted, id, position, source_position, edit_position, fields)
            SELECT f.environment_id, f.realm_id, k.number, f.deleted, f.id, f.position, f.source_position,
                f.edit_position, f.fields::text
            FROM found f LEFT JOIN realm.kind k ON k.name = f.kind
            ON CONFLICT DO NOTHING
        ), last AS (
            SELECT realm_id, kind, id FROM found ORDER BY realm_id DESC, kind DESC, id DESC LIMIT 1
        )
        SELECT c.count, l.realm_id, l.kind, l.id INTO taken, place.realm_id, place.kind, place.id
        FROM (SELECT count(*)::int FROM found) c LEFT JOIN last l ON true;
        place.copied := place.copied + taken;
        IF taken < 500 THEN place.has_objects := true; END IF;
    END LOOP;
    WHILE place.has_objects AND NOT place.has_changes AND clock_timestamp() < began + interval '30 ms' LOOP
        WITH found AS MATERIALIZED (
            SELECT * FROM realm.change
            WHERE environment_id = place.environment_id AND position > place.position
            ORDER BY position LIMIT 500 FOR KEY SHARE
        ), put AS (
            INSERT INTO store.change (environment_id, realm_id, position, changed_at, kind, id, traceparent)
            SELECT f.environment_id, f.realm_id, f.position, f.changed_at, k.number, f.id, f.traceparent
            FROM found f LEFT JOIN realm.kind k ON k.name = f.kind
            ON CONFLICT DO NOTHING
        )
        SELECT count(*)::int, max(position) INTO taken, place.position FROM found;
        place.copied := place.copied + taken;
        IF taken < 500 THEN place.has_changes := true; END IF;
    END LOOP;
    UPDATE store.copying c SET realm_id = coalesce(place.realm_id, c.realm_id), kind = coalesce(place.kind, c.kind),
        id = coalesce(place.id, c.id), position = coalesce(place.position, c.position),
        has_objects = place.has_objects, has_changes = place.has_changes, copied = place.copied
    WHERE c.environment_id = place.environment_id;
    RETURN QUERY SELECT (SELECT sum(copied)::bigint FROM store.copying),
        (SELECT sum(greatest(reltuples, 0))::bigint FROM pg_class
            WHERE oid IN ('realm.object'::regclass, 'realm.change'::regclass));
END
$$;
