-- Defects: commands that only read, of which fewer are kept, because their results are large.

-- Whether the command only reads. Commands of before this version that read choices count among the others.
ALTER TABLE defect.command ADD COLUMN is_reading boolean NOT NULL DEFAULT false;
CREATE INDEX ON defect.command (environment_id, realm_id, edit_position) INCLUDE (command_id)
    WHERE NOT is_waiting AND is_reading;

-- As in 026, with the new column.
CREATE OR REPLACE FUNCTION defect.follow() RETURNS trigger LANGUAGE plpgsql
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
    INSERT INTO defect.command (environment_id, realm_id, command_id, record, edit_position, is_waiting, is_reading)
    VALUES (NEW.environment_id, NEW.realm_id, NEW.id, left(command->>'record', 255), NEW.edit_position,
        coalesce(command->>'status', 'waiting') = 'waiting',
        coalesce(command->>'operation' IN ('choices', 'read', 'form', 'queries', 'runQuery'), false))
    ON CONFLICT (environment_id, realm_id, command_id) DO UPDATE SET
        record = excluded.record, edit_position = excluded.edit_position, is_waiting = excluded.is_waiting,
        is_reading = excluded.is_reading;
    RETURN NULL;
END
$$;
