-- Defects where each person is told by their own login: what was asked for and is done for whom, and up to where each
-- has read the tracker's history.

-- The last run of each scope, as defect.run has them for an environment's account. By the number of the person's realm.
CREATE TABLE defect.own_run (
    environment_id  int NOT NULL REFERENCES realm.environment,
    realm_id        int NOT NULL,
    scope           text NOT NULL,
    run             bigint NOT NULL,
    started_at      timestamptz NOT NULL,
    -- The next one is, before its time. When this one was begun stays known: it may not come to its end.
    asked_for       boolean NOT NULL DEFAULT false,
    -- The last one whose findings are written.
    finished_run    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (environment_id, realm_id, scope)
) WITH (fillfactor = 50);

-- Up to where a person's own login has read. defect.watermark has the newest time of all of them, or of the account.
CREATE TABLE defect.own_watermark (
    environment_id      int NOT NULL REFERENCES realm.environment,
    realm_id            int NOT NULL,
    tracker_id          uuid NOT NULL,
    action_timestamp    text NOT NULL,
    PRIMARY KEY (environment_id, realm_id)
) WITH (fillfactor = 50);

-- Up to where the account itself has read: from there on people are told by their own logins when it goes, and none of
-- them moves it for the others. Null: it has not for a while.
ALTER TABLE defect.watermark ADD COLUMN account_timestamp text;
UPDATE defect.watermark SET account_timestamp = action_timestamp;

-- What is mirrored in one realm.
CREATE INDEX ON defect.mirror (environment_id, realm_id);
