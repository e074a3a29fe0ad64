-- Notes about tasks.

-- One row per note that task-fan-out has processed.
CREATE TABLE task.note (
    environment_id  int NOT NULL,
    note_id         uuid NOT NULL,
    -- Incremented by each change of the row: the precondition of a decision.
    version         bigint NOT NULL,
    task_id         uuid NOT NULL,
    -- The realm of the copy; null: there is none. The other object is in /manager.
    realm_id        int,
    -- The note's position when it was first processed: a task's oldest notes are deleted above the limit.
    position        bigint NOT NULL,
    PRIMARY KEY (environment_id, note_id)
) WITH (fillfactor = 70);
CREATE INDEX ON task.note (environment_id, task_id, position);

-- As in 016.
SET LOCAL lock_timeout = '60s';
LOCK TABLE store.object IN SHARE UPDATE EXCLUSIVE MODE;
SET LOCAL lock_timeout = '200ms';

-- As in 019, with TaskNote (29).
CREATE OR REPLACE TRIGGER blob_named AFTER INSERT ON store.object
    FOR EACH ROW WHEN (
        NEW.kind IN (1, 4, 13, 29) AND strpos(NEW.fields, CASE NEW.kind WHEN 4 THEN '"avatar"' ELSE '"image"' END) > 0)
    EXECUTE FUNCTION blob.follow();
CREATE OR REPLACE TRIGGER blob_changed AFTER UPDATE ON store.object
    FOR EACH ROW WHEN (
        NEW.kind IN (1, 4, 13, 29) AND OLD.fields IS DISTINCT FROM NEW.fields
        AND (strpos(OLD.fields, CASE OLD.kind WHEN 4 THEN '"avatar"' ELSE '"image"' END) > 0
            OR strpos(NEW.fields, CASE NEW.kind WHEN 4 THEN '"avatar"' ELSE '"image"' END) > 0))
    EXECUTE FUNCTION blob.follow();
CREATE OR REPLACE TRIGGER blob_gone AFTER DELETE ON store.object
    FOR EACH ROW WHEN (
        OLD.kind IN (1, 4, 13, 29) AND strpos(OLD.fields, CASE OLD.kind WHEN 4 THEN '"avatar"' ELSE '"image"' END) > 0)
    EXECUTE FUNCTION blob.follow();
