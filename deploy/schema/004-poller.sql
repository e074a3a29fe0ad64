-- Keeping the database in sync with the back ends: what was asked for, and what is done.

CREATE SCHEMA poll;

-- The last run of each environment's polls. Its polls are objects of the realm /polls.
CREATE TABLE poll.run (
    environment_id  int PRIMARY KEY REFERENCES realm.environment,
    run             bigint NOT NULL,
    started_at      timestamptz NOT NULL
) WITH (fillfactor = 10);

-- The last run of each poll whose findings are written. An answer to it, or to an earlier one, says nothing any more.
CREATE TABLE poll.finished (
    environment_id  int NOT NULL REFERENCES realm.environment,
    poll_id         uuid NOT NULL,
    run             bigint NOT NULL,
    PRIMARY KEY (environment_id, poll_id)
) WITH (fillfactor = 60);
