-- Images: their bytes, and which objects name them.

CREATE SCHEMA blob;

-- A blob never changes. Who uploaded it, as in device.client: a person, or an integration, negated.
CREATE TABLE blob.content (
    environment_id  int NOT NULL,
    uploader        int NOT NULL,
    id              uuid NOT NULL,
    -- By its bytes.
    type            text NOT NULL,
    -- SHA-256.
    digest          bytea NOT NULL,
    -- When it was sent last.
    uploaded_at     timestamptz NOT NULL DEFAULT now(),
    bytes           bytea NOT NULL CHECK (octet_length(bytes) BETWEEN 1 AND 1048576),
    PRIMARY KEY (environment_id, id)
);
CREATE INDEX ON blob.content (environment_id, uploader, uploaded_at);
-- Images are compressed by themselves.
ALTER TABLE blob.content ALTER bytes SET STORAGE EXTERNAL;

-- Which objects name a blob, whether it is there or not.
CREATE TABLE blob.reference (
    environment_id  int NOT NULL,
    realm_id        int NOT NULL,
    kind            smallint NOT NULL,
    blob_id         uuid NOT NULL,
    id              uuid NOT NULL,
    PRIMARY KEY (environment_id, blob_id, realm_id, kind, id)
);

-- The blob that an object names. Of a field that holds no id: none.
CREATE FUNCTION blob.named(kind smallint, fields text) RETURNS uuid LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog AS $$
    SELECT CASE WHEN t ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN t::uuid END
    FROM (SELECT fields::json->>CASE kind WHEN 4 THEN 'avatar' ELSE 'image' END AS t) AS field
$$;

-- Whoever writes an object, of whatever release, keeps its reference in the same transaction, under the lock of the
-- environment's counter. Services may have no rights on the table: the function has those of who migrates.
CREATE FUNCTION blob.follow() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    before uuid;
    after uuid;
BEGIN
    IF TG_OP <> 'INSERT' THEN before := blob.named(OLD.kind, OLD.fields); END IF;
    IF TG_OP <> 'DELETE' THEN after := blob.named(NEW.kind, NEW.fields); END IF;
    IF before IS NOT DISTINCT FROM after THEN RETURN NULL; END IF;
    IF before IS NOT NULL THEN
        DELETE FROM blob.reference
        WHERE environment_id = OLD.environment_id AND blob_id = before AND realm_id = OLD.realm_id
            AND kind = OLD.kind AND id = OLD.id;
    END IF;
    IF after IS NOT NULL THEN
        INSERT INTO blob.reference (environment_id, realm_id, kind, blob_id, id)
        VALUES (NEW.environment_id, NEW.realm_id, NEW.kind, after, NEW.id) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;

-- As in 016.
SET LOCAL lock_timeout = '60s';
LOCK TABLE store.object IN SHARE UPDATE EXCLUSIVE MODE;
SET LOCAL lock_timeout = '200ms';

-- The kinds that name one: FieldTask, Person, Team. All others pay for a comparison of their number, and these for a
-- search of the field's name (strpos: it takes half of what LIKE does).
CREATE TRIGGER blob_named AFTER INSERT ON store.object
    FOR EACH ROW WHEN (
        NEW.kind IN (1, 4, 13) AND strpos(NEW.fields, CASE NEW.kind WHEN 4 THEN '"avatar"' ELSE '"image"' END) > 0)
    EXECUTE FUNCTION blob.follow();
CREATE TRIGGER blob_changed AFTER UPDATE ON store.object
    FOR EACH ROW WHEN (
        NEW.kind IN (1, 4, 13) AND OLD.fields IS DISTINCT FROM NEW.fields
        AND (strpos(OLD.fields, CASE OLD.kind WHEN 4 THEN '"avatar"' ELSE '"image"' END) > 0
            OR strpos(NEW.fields, CASE NEW.kind WHEN 4 THEN '"avatar"' ELSE '"image"' END) > 0))
    EXECUTE FUNCTION blob.follow();
CREATE TRIGGER blob_gone AFTER DELETE ON store.object
    FOR EACH ROW WHEN (
        OLD.kind IN (1, 4, 13) AND strpos(OLD.fields, CASE OLD.kind WHEN 4 THEN '"avatar"' ELSE '"image"' END) > 0)
    EXECUTE FUNCTION blob.follow();

-- People and teams could name blobs before; only in /common.
INSERT INTO blob.reference (environment_id, realm_id, kind, blob_id, id)
SELECT n.environment_id, n.realm_id, n.kind, n.blob_id, n.id
FROM realm.realm r CROSS JOIN LATERAL (
    SELECT o.environment_id, o.realm_id, o.kind, blob.named(o.kind, o.fields) AS blob_id, o.id FROM store.object o
    WHERE o.environment_id = r.environment_id AND o.realm_id = r.id AND o.kind IN (4, 13)
        AND (o.fields LIKE '%"image"%' OR o.fields LIKE '%"avatar"%')
    OFFSET 0
) n
WHERE r.path = '/common' AND n.blob_id IS NOT NULL;
