-- How fast back ends are called, and parked keys by environment.

-- `calls_per_second`: entries submitted a second, of all people and of one person, by all workers together; null: as
-- fast as the back end answers.
ALTER TABLE backend.connection
    ADD calls_per_second         int CHECK (calls_per_second BETWEEN 1 AND 10000),
    ADD person_calls_per_second  int CHECK (person_calls_per_second BETWEEN 1 AND 10000);

-- Each environment's keys are taken by themselves: what waits for one back end is in nobody else's way.
CREATE INDEX ON pipeline.parked (group_name, environment_id, next_at) WHERE NOT is_dead;
DROP INDEX pipeline.parked_group_name_next_at_idx;
