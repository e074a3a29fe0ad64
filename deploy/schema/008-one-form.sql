-- What differs between databases of two releases, whose 003 and 005 were not the same, is made the same.

-- The kinds of back ends that have an adapter.
ALTER TABLE backend.connection
    DROP CONSTRAINT IF EXISTS connection_kind_check,
    ADD CONSTRAINT connection_kind_check CHECK (kind IN ('sap', 'economic'));

-- A catalogue from before that nobody has was prepared by an integration, and is not to be emptied.
DELETE FROM audience.catalogue c
WHERE c.tree = c.id AND NOT EXISTS (SELECT FROM audience.person p
    WHERE p.environment_id = c.environment_id AND p.catalogue = c.id);
