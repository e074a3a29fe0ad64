-- Incremental polling: what back ends tell to have changed, and the full comparison on a slower beat.

-- `poll_interval_seconds` is between two runs; a run asks what has changed, where the back end can tell.
-- `full_poll_interval_seconds`: between two comparisons of all that everybody has.
ALTER TABLE backend.connection
    ADD full_poll_interval_seconds  int NOT NULL DEFAULT 3600
        CHECK (full_poll_interval_seconds BETWEEN 5 AND 604800);

-- When the last run with a full comparison began.
ALTER TABLE poll.run ADD full_started_at timestamptz;

-- Up to where each environment's changes are read and durable: the adapter's own text. It moves in the transaction that
-- writes what was read, from the value it was read after.
CREATE TABLE poll.watermark (
    environment_id  int PRIMARY KEY REFERENCES realm.environment,
    cursor          text NOT NULL
) WITH (fillfactor = 50);
