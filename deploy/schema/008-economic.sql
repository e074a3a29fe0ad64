-- The kinds of back ends that have an adapter. Databases that were made between two releases have it from their 003.
ALTER TABLE backend.connection
    DROP CONSTRAINT IF EXISTS connection_kind_check,
    ADD CONSTRAINT connection_kind_check CHECK (kind IN ('sap', 'economic'));
