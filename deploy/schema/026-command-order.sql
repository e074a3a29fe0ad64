-- Defects: commands that are handed in, by their records, so that whose turn it is is known without reading them all.
-- Deliveries: which e-mail a notice goes with, and for how long the oldest waits, by way.

CREATE TABLE defect.command (
    environment_id  int NOT NULL,
    realm_id        int NOT NULL,
    command_id      uuid NOT NULL,
    -- As far as an index holds it; null: a new one.
    record          text,
    edit_position   bigint NOT NULL,
    -- It is not done; else it is at its end.
    is_waiting      boolean NOT NULL,
    handed_in_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (environment_id, realm_id, command_id)
) WITH (fillfactor = 50);
CREATE INDEX ON defect.command (environment_id, realm_id, record, edit_position) WHERE is_waiting;
CREATE INDEX ON defect.command (environment_id, realm_id, edit_position) INCLUDE (command_id) WHERE NOT is_waiting;

-- Whoever writes commands, of whatever release, keeps it in the same transaction: as blob.follow, 019.
CREATE FUNCTION defect.follow() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    command json;
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM defect.command
        WHERE environment_id = OLD.environment_id AND realm_id = OLD.realm_id AND command_id = OLD.id;
        RETURN NULL;
    END IF;
    IF NOT NEW.deleted THEN command := NEW.fields::json; END IF;
    IF command->>'submitRequested' IS DISTINCT FROM 'true' THEN
        DELETE FROM defect.command
        WHERE environment_id = NEW.environment_id AND realm_id = NEW.realm_id AND command_id = NEW.id;
        RETURN NULL;
    END IF;
    INSERT INTO defect.command (environment_id, realm_id, command_id, record, edit_position, is_waiting)
    VALUES (NEW.environment_id, NEW.realm_id, NEW.id, left(command->>'record', 255), NEW.edit_position,
        coalesce(command->>'status', 'waiting') = 'waiting')
    ON CONFLICT (environment_id, realm_id, command_id) DO UPDATE SET
        record = excluded.record, edit_position = excluded.edit_position, is_waiting = excluded.is_waiting;
    RETURN NULL;
END
$$;

-- As in 016.
SET LOCAL lock_timeout = '60s';
LOCK TABLE store.object IN SHARE UPDATE EXCLUSIVE MODE;
SET LOCAL lock_timeout = '200ms';

-- DefectCommand. All other kinds pay for a comparison of their number.
CREATE TRIGGER command_written AFTER INSERT OR UPDATE ON store.object
    FOR EACH ROW WHEN (NEW.kind = 23) EXECUTE FUNCTION defect.follow();
CREATE TRIGGER command_gone AFTER DELETE ON store.object
    FOR EACH ROW WHEN (OLD.kind = 23) EXECUTE FUNCTION defect.follow();

-- Those that were handed in before.
INSERT INTO defect.command (environment_id, realm_id, command_id, record, edit_position, is_waiting)
SELECT o.environment_id, o.realm_id, o.id, left(o.fields::json->>'record', 255), o.edit_position,
    coalesce(o.fields::json->>'status', 'waiting') = 'waiting'
FROM realm.realm r CROSS JOIN LATERAL (
    SELECT * FROM store.object
    WHERE environment_id = r.environment_id AND realm_id = r.id AND kind = 23 AND NOT deleted
    OFFSET 0
) o
WHERE o.fields::json->>'submitRequested' = 'true';

-- The digest that it goes with, since that was tried first; null: none yet.
ALTER TABLE delivery.shipment ADD COLUMN message_id uuid;
DROP INDEX delivery.shipment_due_at_idx;
CREATE INDEX ON delivery.shipment (way, due_at) WHERE state = 'waiting';
