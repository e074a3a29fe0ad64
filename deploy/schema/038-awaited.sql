-- Notifications of new positions, for readers that have nothing to do.

-- A reader of the change log sets it before it stops polling: the next new position is notified, and clears it. As it is
-- a column of the counter's row, a transaction that writes objects either committed before it was set, or sees it.
-- True in a new environment: its first change is notified.
ALTER TABLE realm.environment ADD is_awaited boolean NOT NULL DEFAULT true;

CREATE FUNCTION realm.notify_position() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    NEW.is_awaited := false;
    PERFORM pg_notify('fieldpost_position', '');
    RETURN NEW;
END
$$;

-- NOTIFY takes a lock at commit that exists once per server: only awaited transactions take it.
CREATE TRIGGER position_awaited BEFORE UPDATE OF position, generation ON realm.environment
    FOR EACH ROW WHEN (OLD.is_awaited) EXECUTE FUNCTION realm.notify_position();

-- As in 029. A request is not refused while the environment moves.
CREATE OR REPLACE FUNCTION realm.refuse_moving() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    found text;
BEGIN
    IF TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME = 'access.audit' AND TG_OP = 'INSERT' THEN
        IF NEW.action IN ('environment.left', 'environment.taken-back') THEN RETURN NEW; END IF;
    END IF;
    IF current_setting('fieldpost.discarding', true) = TG_ARGV[0] THEN
        SELECT state INTO found FROM realm.move WHERE environment_id = TG_ARGV[0]::int;
        IF found = 'left' THEN
            IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
            RETURN NEW;
        END IF;
    END IF;
    IF TG_OP = 'DELETE' OR TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME IN ('pipeline.parked', 'delivery.shipment') THEN
        RETURN NULL;
    END IF;
    IF TG_TABLE_NAME = 'environment' THEN
        -- Compaction skips it.
        IF NEW.compacted_position <> OLD.compacted_position THEN RETURN NULL; END IF;
        -- A reader requests a notification.
        IF NEW.is_awaited AND NOT OLD.is_awaited
            AND (NEW.position, NEW.generation) = (OLD.position, OLD.generation)
        THEN
            RETURN NEW;
        END IF;
    END IF;
    SELECT state INTO found FROM realm.move WHERE environment_id = TG_ARGV[0]::int;
    IF found = 'left' THEN
        RAISE EXCEPTION 'the environment % has moved to another installation', TG_ARGV[0] USING ERRCODE = '23514';
    END IF;
    -- Not less than a wait for a lock, which limits the rate of retries.
    IF TG_TABLE_NAME = 'environment' THEN PERFORM pg_sleep(0.1); END IF;
    RAISE EXCEPTION 'the environment % is being moved to another installation', TG_ARGV[0] USING ERRCODE = '55P03';
END
$$;
