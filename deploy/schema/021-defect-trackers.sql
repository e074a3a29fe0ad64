-- Where an environment's defects are kept: HCL Compass.

-- At most one per environment. Its account asks for everybody's defects; without one each person's own login does. The
-- secret is sealed with the configured key (AES-GCM): a password, or a personal access token where there is no user.
CREATE TABLE backend.defect_tracker (
    environment_id         int PRIMARY KEY REFERENCES realm.environment,
    server_url             text NOT NULL,
    repository             text NOT NULL,
    database_name          text NOT NULL,
    record_type            text NOT NULL,
    user_name              text,
    secret                 bytea,
    poll_interval_seconds  int NOT NULL CHECK (poll_interval_seconds BETWEEN 5 AND 86400),
    CHECK (user_name IS NULL OR secret IS NOT NULL)
);
