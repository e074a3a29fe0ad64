-- Onboarding: how an environment lets people in, the sessions of devices that come in, and what they are told.

ALTER TABLE access.provider
    ADD client_id       text,
    ADD client_secret   bytea,             -- sealed with the configured key (AES-GCM)
    ADD discovery_url   text,              -- when it is not below the issuer
    ADD scopes          text[] NOT NULL DEFAULT '{openid,email,profile}',
    ADD initialise_on   text NOT NULL DEFAULT 'registration' CHECK (initialise_on IN ('registration', 'login')),
    ADD hide_unknown    boolean NOT NULL DEFAULT true;

-- The e-mail domains of environments, lowered. One that two environments had must be taken from one of them first: then
-- this file fails, and names it.
CREATE TABLE access.domain (
    domain          text PRIMARY KEY,
    environment_id  int NOT NULL REFERENCES realm.environment
);
CREATE INDEX ON access.domain (environment_id);
INSERT INTO access.domain (domain, environment_id)
SELECT DISTINCT lower(d), p.environment_id FROM access.provider p, unnest(p.domains) AS u(d);
ALTER TABLE access.provider DROP COLUMN domains;

-- Addresses that belong to an environment whatever their domain. They count before the domains.
CREATE TABLE access.address (
    email           text PRIMARY KEY,
    environment_id  int NOT NULL REFERENCES realm.environment
);
CREATE INDEX ON access.address (environment_id);

-- The password itself, sealed, or the name of the variable that holds it: what 001 says of it is over.
-- `poll_interval_seconds` is kept for the poller, which is not there yet.
ALTER TABLE backend.connection
    ALTER password_variable DROP NOT NULL,
    ADD password               bytea,
    ADD poll_interval_seconds  int NOT NULL DEFAULT 300 CHECK (poll_interval_seconds BETWEEN 5 AND 86400),
    ADD CHECK ((password_variable IS NULL) <> (password IS NULL));

CREATE SCHEMA onboarding;

-- A device that comes in. Its id is known to the device alone: here is only the SHA-256 of it.
--   progress  0 nothing told of the realm yet, 1 told that it is there, 2 told that it is filled, 3 told that it never will
CREATE TABLE onboarding.session (
    id               bytea PRIMARY KEY,
    environment_id   int NOT NULL REFERENCES realm.environment,
    email            text NOT NULL,
    realms_id        uuid NOT NULL,        -- the person's `Realms` object
    created_at       timestamptz NOT NULL DEFAULT now(),
    expires_at       timestamptz NOT NULL,
    device_address   text NOT NULL,
    device_name      text NOT NULL,
    wants_realm      boolean NOT NULL,     -- the person's realm is still to be registered
    person_id        int,                  -- since the login
    progress         smallint NOT NULL DEFAULT 0,
    socket           int NOT NULL DEFAULT 0  -- the number of the newest socket; older ones are closed
) WITH (fillfactor = 60);
CREATE INDEX ON onboarding.session (expires_at);
CREATE INDEX ON onboarding.session (environment_id, created_at) WHERE wants_realm;
CREATE INDEX ON onboarding.session (id) WHERE progress < 2;

-- An attempt to log in, by the SHA-256 of its `state`. It is used once.
CREATE TABLE onboarding.login (
    state       bytea PRIMARY KEY,
    session_id  bytea NOT NULL REFERENCES onboarding.session ON DELETE CASCADE,
    nonce       text NOT NULL,
    verifier    bytea NOT NULL,            -- of PKCE, sealed
    used_at     timestamptz,
    ended_at    timestamptz,               -- the device was told what came of it
    confirm     bytea,                     -- SHA-256 of what the person's answer must carry
    tokens      bytea                      -- sealed, while the person is asked
) WITH (fillfactor = 60);
CREATE INDEX ON onboarding.login (session_id);
CREATE UNIQUE INDEX ON onboarding.login (confirm) WHERE confirm IS NOT NULL;

-- Positions of events in commit order, as `realm.environment` has them for objects.
CREATE TABLE onboarding.counter (
    id        boolean PRIMARY KEY DEFAULT true CHECK (id),
    position  bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO onboarding.counter (position) VALUES (0);

-- What a device is told, until it acknowledges it.
CREATE TABLE onboarding.event (
    session_id  bytea NOT NULL REFERENCES onboarding.session ON DELETE CASCADE,
    position    bigint NOT NULL,
    name        text NOT NULL,
    payload     bytea,                     -- JSON, sealed; gone once it is acknowledged
    PRIMARY KEY (session_id, position)
);
CREATE INDEX ON onboarding.event (position);
CREATE UNIQUE INDEX ON onboarding.event (session_id, name) WHERE name <> 'error';

-- Refresh tokens, sealed. Kept only where the provider gives them.
CREATE TABLE onboarding.refresh_token (
    environment_id  int NOT NULL,
    id              bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    person_id       int NOT NULL,
    token           bytea NOT NULL,
    obtained_at     timestamptz NOT NULL DEFAULT now(),
    revoked_at      timestamptz,
    PRIMARY KEY (environment_id, id),
    FOREIGN KEY (environment_id, person_id) REFERENCES access.person
);
CREATE INDEX ON onboarding.refresh_token (environment_id, person_id) WHERE revoked_at IS NULL;

-- How often something was tried, over all instances. Lost in a crash, which is harmless.
CREATE UNLOGGED TABLE onboarding.rate (
    key       text PRIMARY KEY,
    until_at  timestamptz NOT NULL,
    count     int NOT NULL
) WITH (fillfactor = 60);
CREATE INDEX ON onboarding.rate (until_at);
