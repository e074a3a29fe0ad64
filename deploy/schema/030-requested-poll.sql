-- Polls of defects that were requested before their time.

-- Whether the next poll was requested, as in defect.own_run. started_at keeps the time of the last one: for a while,
-- people whose environment loses its account continue from there. Services before this version set started_at to
-- -infinity instead.
ALTER TABLE defect.run ADD COLUMN asked_for boolean NOT NULL DEFAULT false;
UPDATE defect.run SET asked_for = true, started_at = now() WHERE NOT isfinite(started_at);
