-- Which kinds of back ends have an adapter is the programs' knowledge: the schema checks only the shape of the name.
ALTER TABLE backend.connection
    DROP CONSTRAINT connection_kind_check,
    ADD CONSTRAINT connection_kind_check CHECK (kind ~ '^[a-z][a-z0-9-]{0,30}$');
