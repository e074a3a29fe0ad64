-- What says that an address is its person's, and devices that renew their tokens by themselves.

-- `email_verified` and `xms_edov` are claims of the token; `issuer`: the provider itself, of the environment's domains.
ALTER TABLE access.provider
    ADD address_vouched_by text NOT NULL DEFAULT 'email_verified'
        CHECK (address_vouched_by IN ('email_verified', 'xms_edov', 'issuer'));

-- The names of the claims in the ID token of the newest login, for whoever sets an environment up; no values.
CREATE TABLE onboarding.token_claims (
    environment_id  int PRIMARY KEY REFERENCES realm.environment,
    names           text[] NOT NULL,
    seen_at         timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- A login whose provider gave a refresh token is a device that may renew its token. Of its credential here are only the
-- SHA-256 of its name, which stays, and of its secrets: the newest that was handed out, and the one before.
-- `version` grows with each renewal: what an older one writes does not count. A device is shut out by taking its secrets.
ALTER TABLE onboarding.refresh_token
    ADD device       bytea,
    ADD newest       bytea,
    ADD former       bytea,
    ADD device_name  text NOT NULL DEFAULT '',
    ADD issuer       text,                  -- the account that logged in: the device ends with its binding
    ADD subject      text,
    ADD used_at      timestamptz NOT NULL DEFAULT now(),
    ADD version      bigint NOT NULL DEFAULT 0,
    ADD lease_until  timestamptz;           -- a renewal is under way, and no other one begins before this
CREATE UNIQUE INDEX ON onboarding.refresh_token (device) WHERE device IS NOT NULL;
