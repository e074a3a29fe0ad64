-- Kinds that environments declare.

-- The versions of an environment's declarations. The newest one is in use. No table here refers to realm.environment:
-- that would lock it, while store.object is locked for the triggers.
CREATE TABLE realm.kind_version (
    environment_id  int NOT NULL,
    version         int NOT NULL CHECK (version > 0),
    -- A schema file as JSON.
    content         text NOT NULL CHECK (octet_length(content) <= 1048576),
    -- SHA-256 of the content, for entity tags.
    digest          bytea NOT NULL,
    applied_at      timestamptz NOT NULL DEFAULT now(),
    applied_by      text NOT NULL,
    PRIMARY KEY (environment_id, version)
);

-- The kinds that an environment has ever declared. Their numbers are in realm.kind: one for each name, from 1000.
CREATE TABLE realm.own_kind (
    environment_id  int NOT NULL,
    kind            smallint NOT NULL CHECK (kind >= 1000),
    -- The Kafka topic with the changes; null: they are not published.
    topic           text,
    -- SQL/JSON paths of all references to images, also those of earlier versions.
    image_paths     text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (environment_id, kind)
);

-- The blobs that an object of such a kind refers to.
CREATE FUNCTION blob.named_at(paths text[], fields text) RETURNS uuid[] LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog AS $$
    SELECT coalesce(array_agg(DISTINCT t::uuid), '{}')
    FROM unnest(paths) AS p, jsonb_path_query(fields::jsonb, p::jsonpath) AS v, LATERAL (SELECT v #>> '{}' AS t) AS text
    WHERE t ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
$$;

-- As blob.follow.
CREATE FUNCTION blob.follow_own() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    paths text[];
    before uuid[] := '{}';
    after uuid[] := '{}';
BEGIN
    SELECT image_paths INTO paths FROM realm.own_kind
    WHERE environment_id = coalesce(NEW.environment_id, OLD.environment_id) AND kind = coalesce(NEW.kind, OLD.kind)
        AND image_paths <> '{}';
    IF paths IS NULL THEN RETURN NULL; END IF;
    IF TG_OP <> 'INSERT' AND OLD.fields IS NOT NULL THEN before := blob.named_at(paths, OLD.fields); END IF;
    IF TG_OP <> 'DELETE' AND NEW.fields IS NOT NULL THEN after := blob.named_at(paths, NEW.fields); END IF;
    DELETE FROM blob.reference
    WHERE environment_id = OLD.environment_id AND blob_id = ANY (before) AND blob_id <> ALL (after)
        AND realm_id = OLD.realm_id AND kind = OLD.kind AND id = OLD.id;
    INSERT INTO blob.reference (environment_id, realm_id, kind, blob_id, id)
    SELECT NEW.environment_id, NEW.realm_id, NEW.kind, b, NEW.id FROM unnest(after) AS b
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

-- As in 016.
SET LOCAL lock_timeout = '60s';
LOCK TABLE store.object IN SHARE UPDATE EXCLUSIVE MODE;
SET LOCAL lock_timeout = '200ms';

-- Only objects with a UUID pay for the search.
CREATE TRIGGER own_blobs_named AFTER INSERT ON store.object
    FOR EACH ROW WHEN (NEW.kind >= 1000 AND NEW.fields ~ '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-')
    EXECUTE FUNCTION blob.follow_own();
CREATE TRIGGER own_blobs_changed AFTER UPDATE ON store.object
    FOR EACH ROW WHEN (
        NEW.kind >= 1000 AND OLD.fields IS DISTINCT FROM NEW.fields
        AND (OLD.fields ~ '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-' OR NEW.fields ~ '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-'))
    EXECUTE FUNCTION blob.follow_own();
CREATE TRIGGER own_blobs_gone AFTER DELETE ON store.object
    FOR EACH ROW WHEN (OLD.kind >= 1000 AND OLD.fields ~ '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-')
    EXECUTE FUNCTION blob.follow_own();
