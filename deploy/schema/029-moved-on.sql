-- Moving an environment, to its end.

-- The number that an environment had where it was founded: what was made from it stays the same wherever it goes. NULL:
-- its number here.
ALTER TABLE realm.environment ADD founded_as int;

-- When what stays of an environment that has left began to be removed: from then on it is not sent again.
ALTER TABLE realm.move ADD discarded_at timestamptz;

-- As before; and what the audit log says of the move itself is written, and what stays of an environment that has left
-- is removed by who says so with `fieldpost.discarding`.
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
        -- Whoever compacts passes over it.
        IF NEW.compacted_position <> OLD.compacted_position THEN RETURN NULL; END IF;
    END IF;
    SELECT state INTO found FROM realm.move WHERE environment_id = TG_ARGV[0]::int;
    IF found = 'left' THEN
        RAISE EXCEPTION 'the environment % has moved to another installation', TG_ARGV[0] USING ERRCODE = '23514';
    END IF;
    -- As long as a lock is waited for at least: who tries again does so at that pace.
    IF TG_TABLE_NAME = 'environment' THEN PERFORM pg_sleep(0.1); END IF;
    RAISE EXCEPTION 'the environment % is being moved to another installation', TG_ARGV[0] USING ERRCODE = '55P03';
END
$$;
