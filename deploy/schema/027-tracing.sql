-- Tracing: a parked key goes on with its trace, and what came of each attempt to submit an entry stays known.

-- The trace context of what the key waits with. Services of the release before leave it as it is.
ALTER TABLE pipeline.parked ADD COLUMN traceparent text;

-- One row for each write of the ledger that begins a call or records what came of one. Nothing is decided from it: it is
-- written with the ledger, never changed, and removed when it is old.
CREATE TABLE submission.attempt (
    environment_id  int NOT NULL,
    entry_id        uuid NOT NULL,
    happened_at     timestamptz NOT NULL DEFAULT now(),
    -- The ledger's; it begins anew when the ledger's row was forgotten.
    version         bigint NOT NULL,
    realm_id        int NOT NULL,
    -- The edit that is or was handled.
    edit_position   bigint NOT NULL,
    -- What came of the call before: 'record', 'absent', 'ambiguous', 'refused', 'notProcessed', 'unknown', 'notMade'.
    -- Null: nothing was heard of one.
    heard           text,
    detail          text,
    -- The call that is made from here on: 'create', 'update', 'delete', 'find'. Null: none.
    began           text,
    -- The back end's id of the record, as far as it is known.
    backend_id      text,
    traceparent     text,
    PRIMARY KEY (environment_id, entry_id, happened_at, version)
);
