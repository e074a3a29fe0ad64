-- Moving an environment to another installation.

-- An environment that leaves, or arrives. While it is 'held' or has 'left', nothing of it can be written here.
--   copying   it leaves: objects are copied while it works
--   held      it leaves: it has stopped, so that the rest can be copied
--   left      it has left for good
--   arriving  it arrives: rows come in, and nobody works with it
--   whole     it arrives: all of it is here
--   begun     it has arrived, and works here
CREATE TABLE realm.move (
    environment_id  int PRIMARY KEY REFERENCES realm.environment,
    move_id         uuid NOT NULL,
    state           text NOT NULL CHECK (state IN ('copying', 'held', 'left', 'arriving', 'whole', 'begun')),
    -- Where its devices find it, when it has left.
    moved_to        text,
    -- Of an environment that arrives: what its counter is to be.
    generation          bigint,
    position            bigint,
    compacted_position  bigint,
    -- Where a stream that was cut goes on.
    resume              text,
    changed_at      timestamptz NOT NULL DEFAULT now()
);

-- What arrived and would begin to work at once, until the environment does: lines of JSON, one each row.
CREATE TABLE realm.move_part (
    environment_id  int NOT NULL REFERENCES realm.environment,
    number          int NOT NULL,
    table_name      text NOT NULL,
    lines           text NOT NULL,
    PRIMARY KEY (environment_id, number)
);

-- Whoever writes an environment that is held is answered as if somebody held a lock (55P03): workers set the
-- environment aside, gateways ask devices to come again. What is written of one that has left is refused as data that
-- cannot be (23514). Tables that are written for many environments at once lose the row instead: what is parked is found
-- again when everything is published again, here or where it went.
CREATE FUNCTION realm.refuse_moving() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    found text;
BEGIN
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

-- Lets nobody write an environment's rows of a table. It waits for those who are writing the table, whose transactions
-- are short: when it returns and is committed, nobody writes them any more.
CREATE FUNCTION realm.hold(environment int, name regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    key text := CASE WHEN name = 'realm.environment'::regclass THEN 'id' ELSE 'environment_id' END;
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE TRIGGER moving_write_%1$s BEFORE INSERT OR UPDATE ON %2$s FOR EACH ROW '
        'WHEN (NEW.%3$I = %1$s) EXECUTE FUNCTION realm.refuse_moving(%1$s)', environment, name, key);
    EXECUTE format(
        'CREATE OR REPLACE TRIGGER moving_delete_%1$s BEFORE DELETE ON %2$s FOR EACH ROW '
        'WHEN (OLD.%3$I = %1$s) EXECUTE FUNCTION realm.refuse_moving(%1$s)', environment, name, key);
END
$$;

-- The contrary.
CREATE FUNCTION realm.let_go(environment int, name regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TRIGGER IF EXISTS moving_write_%1$s ON %2$s', environment, name);
    EXECUTE format('DROP TRIGGER IF EXISTS moving_delete_%1$s ON %2$s', environment, name);
END
$$;

REVOKE EXECUTE ON FUNCTION realm.hold, realm.let_go FROM PUBLIC;
