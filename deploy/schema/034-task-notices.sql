-- Notices about tasks: their due dates, and the people who changed them.

ALTER TABLE task.copy
    -- The master's due date at the last decision.
    ADD COLUMN due_at timestamptz,
    -- Whether the task was processed after its due date; null: a version without due dates processed it.
    ADD COLUMN is_due boolean;
-- The tasks to reprocess: those whose due date has passed, and those of before this version.
CREATE INDEX ON task.copy (due_at)
    WHERE due_at IS NOT NULL AND is_due = false AND NOT is_completed AND realm_id IS NOT NULL;
CREATE INDEX ON task.copy (environment_id) WHERE is_due IS NULL;

-- The people who changed masters, until task-fan-out has processed the changes: a person gets no notice of an own act.
CREATE TABLE device.task_author (
    environment_id  int NOT NULL,
    task_id         uuid NOT NULL,
    -- The position of the last edit.
    edit_position   bigint NOT NULL,
    -- The id of the Person; null: several people, or an integration.
    author_id       uuid,
    PRIMARY KEY (environment_id, task_id)
) WITH (fillfactor = 50);
