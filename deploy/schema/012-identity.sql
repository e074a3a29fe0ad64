-- What says that an address is its person's.

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
