-- The retention of what people delete or no longer share.

-- Days for which an environment's people can restore deleted objects and see ended shares.
ALTER TABLE access.provider ADD COLUMN deleted_days int NOT NULL DEFAULT 30 CHECK (deleted_days BETWEEN 1 AND 3650);
