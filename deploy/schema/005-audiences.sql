-- Who may report on what: people whose nodes are the same are an audience, and share a catalogue.

CREATE SCHEMA audience;

-- Nodes that somebody may report on, as the back end told them: what a catalogue is to hold.
-- `digests`: 16 bytes of each node's id and 16 of a hash of what it says, in the order of the ids; `nodes`: the fields
-- by id.
CREATE TABLE audience.tree (
    environment_id  int NOT NULL REFERENCES realm.environment,
    digest          uuid NOT NULL,
    digests         bytea NOT NULL,
    nodes           jsonb NOT NULL,
    PRIMARY KEY (environment_id, digest)
);
ALTER TABLE audience.tree ALTER digests SET STORAGE MAIN;

-- What is in the realm /catalogues/{id}.
CREATE TABLE audience.catalogue (
    environment_id  int NOT NULL REFERENCES realm.environment,
    id              uuid NOT NULL,
    tree            uuid NOT NULL,
    PRIMARY KEY (environment_id, id)
) WITH (fillfactor = 60);

-- What each person may report on, as it was last read, and the catalogue that the person's User object names.
-- `changed_at`: when it was first read so.
CREATE TABLE audience.person (
    environment_id  int NOT NULL REFERENCES realm.environment,
    email           text NOT NULL,
    tree            uuid NOT NULL,
    catalogue       uuid,
    read_at         timestamptz NOT NULL,
    changed_at      timestamptz NOT NULL,
    PRIMARY KEY (environment_id, email)
) WITH (fillfactor = 60);
CREATE INDEX ON audience.person (environment_id, catalogue);

-- The last run after which everybody's catalogue was looked at.
ALTER TABLE poll.run ADD settled_run bigint NOT NULL DEFAULT 0;

-- Catalogues from before that somebody has: until it is read again, each is taken for what its people may report on. A name takes the
-- place of the digest, and an id that of its hash.
INSERT INTO audience.tree (environment_id, digest, digests, nodes)
SELECT o.environment_id, substr(r.path, 13)::uuid, string_agg(uuid_send(o.id) || uuid_send(o.id), '' ORDER BY o.id),
    jsonb_object_agg(o.id, o.fields)
FROM realm.object o JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
WHERE r.path LIKE '/catalogues/%' AND o.kind = 'ReportingTreeNode' AND NOT o.deleted
    AND EXISTS (SELECT FROM realm.object u WHERE u.environment_id = o.environment_id AND u.kind = 'User'
        AND NOT u.deleted AND u.fields->>'catalogue' = substr(r.path, 13))
GROUP BY 1, 2;

INSERT INTO audience.catalogue (environment_id, id, tree) SELECT environment_id, digest, digest FROM audience.tree;

INSERT INTO audience.person (environment_id, email, tree, catalogue, read_at, changed_at)
SELECT o.environment_id, substr(r.path, 8), t.digest, t.digest, '-infinity', '-infinity'
FROM realm.object o
JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
JOIN audience.tree t ON t.environment_id = o.environment_id AND t.digest::text = o.fields->>'catalogue'
WHERE r.path LIKE '/users/%' AND o.kind = 'User' AND NOT o.deleted;
