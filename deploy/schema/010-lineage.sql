-- Which history of the database this is. PostgreSQL begins another timeline when a standby is promoted or a backup is
-- recovered, a new cluster has another system identifier, and a dump makes its tables anew, with other oids: then the
-- last transactions may be missing, of which devices, Kafka and back ends know. `fieldpost restore` says what is to be
-- done about it; until then nobody works.

CREATE TABLE realm.lineage (
    id                 boolean PRIMARY KEY DEFAULT true CHECK (id),
    system_identifier  bigint NOT NULL,
    timeline           bigint NOT NULL,
    table_id           bigint NOT NULL,   -- the oid of this table
    restored_at        timestamptz        -- when something was lost the last time
);

-- The timeline is that of the log's end: the control file tells the last checkpoint's, which may be older.
CREATE FUNCTION realm.lineage_found(OUT system_identifier bigint, OUT timeline bigint, OUT table_id bigint)
LANGUAGE sql STABLE AS $$
    SELECT s.system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint,
        'realm.lineage'::regclass::oid::bigint
    FROM pg_control_system() s
$$;

-- A text that is the same as long as nothing was lost. Every session of a service begins with it.
CREATE FUNCTION realm.lineage_check() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    known realm.lineage;
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'this database is a standby, or is being recovered' USING ERRCODE = '57P03';
    END IF;
    SELECT * INTO known FROM realm.lineage;
    IF NOT EXISTS (SELECT FROM realm.lineage_found() f WHERE f.system_identifier = known.system_identifier
        AND f.timeline = known.timeline AND f.table_id = known.table_id)
    THEN
        RAISE EXCEPTION '%', 'this database was restored or has failed over, and its last transactions may be missing; '
            || 'run: fieldpost restore (or, when it is certain that nothing is missing: '
            || 'fieldpost restore --nothing-lost)'
            USING ERRCODE = 'FP001';
    END IF;
    RETURN known.system_identifier || '/' || known.timeline || '/' || known.table_id || '/'
        || coalesce(extract(epoch FROM known.restored_at)::text, '');
END
$$;

INSERT INTO realm.lineage (system_identifier, timeline, table_id)
SELECT system_identifier, timeline, table_id FROM realm.lineage_found();
