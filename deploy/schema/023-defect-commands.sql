-- Defects: people's own logins, and which command of whose is being done with which record.

-- A person's own login of the environment's tracker, by the number of their realm. The secret is sealed with the
-- configured key (AES-GCM) for this place: a password, or a personal access token where there is no user.
CREATE TABLE backend.defect_account (
    environment_id  int NOT NULL REFERENCES realm.environment,
    realm_id        int NOT NULL,
    user_name       text,
    secret          bytea NOT NULL,
    PRIMARY KEY (environment_id, realm_id)
);

-- The attempt that is open of each record: one at a time. There is a row from before the first call until what came of
-- it is written in the command.
CREATE TABLE defect.attempt (
    environment_id  int NOT NULL,
    -- Made of the tracker and the record; for a new record, of the tracker and the command.
    target_id       uuid NOT NULL,
    realm_id        int NOT NULL,
    command_id      uuid NOT NULL,
    -- Another one with each call: it tells a late answer from the one that is waited for.
    call_id         uuid NOT NULL,
    -- The tracker's id; null while a new record has none.
    record          text,
    -- Calls of it may be under way until then.
    lease_until     timestamptz NOT NULL,
    PRIMARY KEY (environment_id, target_id),
    UNIQUE (environment_id, realm_id, command_id)
) WITH (fillfactor = 50);
