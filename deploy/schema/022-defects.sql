-- Defects: what was asked for and is done, up to where the tracker's history was read, and who has mirrors of what.

-- Which person is which login of the environment's tracker of defects: one of each, as an administrator says.
CREATE TABLE backend.defect_login (
    environment_id  int NOT NULL REFERENCES realm.environment,
    login           text NOT NULL,
    email           text NOT NULL,
    PRIMARY KEY (environment_id, login),
    UNIQUE (environment_id, email)
);

CREATE SCHEMA defect;

-- The last run of each scope, `changes` and `comparison`. Its polls are objects of the realm /polls.
CREATE TABLE defect.run (
    environment_id  int NOT NULL REFERENCES realm.environment,
    scope           text NOT NULL,
    run             bigint NOT NULL,
    -- When it was begun; '-infinity': the next one is asked for.
    started_at      timestamptz NOT NULL,
    -- The last one whose findings are written.
    finished_run    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (environment_id, scope)
) WITH (fillfactor = 10);

-- Up to where the history is read and durable: the newest time, as the tracker writes it. It moves in the transaction
-- of a round's last page.
CREATE TABLE defect.watermark (
    environment_id      int PRIMARY KEY REFERENCES realm.environment,
    -- Made of server, repository and database: that of another tracker does not count.
    tracker_id          uuid NOT NULL,
    action_timestamp    text NOT NULL
) WITH (fillfactor = 50);

-- Rows of the history that were read, as long as they are read again.
CREATE TABLE defect.seen (
    environment_id  int NOT NULL,
    row_id          uuid NOT NULL,
    -- When it happened, in seconds of the tracker's clock.
    clock_seconds   bigint NOT NULL,
    PRIMARY KEY (environment_id, row_id)
);
CREATE INDEX ON defect.seen (environment_id, clock_seconds);

-- In whose realm a defect is mirrored.
CREATE TABLE defect.mirror (
    environment_id  int NOT NULL,
    defect_id       uuid NOT NULL,
    realm_id        int NOT NULL,
    PRIMARY KEY (environment_id, defect_id, realm_id)
);
