ALTER TABLE backend.connection
    -- What its people can register, as its operator declares it; NULL: what the adapter has by itself.
    ADD templates jsonb CHECK (jsonb_typeof(templates) = 'object'),
    -- Grows with each edit: a worker that sees another one calls the back end as it is described now.
    ADD revision bigint NOT NULL DEFAULT 0;

-- What the identity provider called a person at their last login.
ALTER TABLE access.person ADD name text;
