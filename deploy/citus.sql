-- THIS WAS NOT RUN. It is written from Citus's documentation (docs.citusdata.com, "Multi-tenant Applications" and
-- "Citus Utility Functions", release 12), to show that the schema can be distributed by environment. Try it on a copy
-- of your data before anything depends on it; `fieldpost migrate` does not support it.
--
-- Run it on the coordinator of a Citus cluster, on a database that `fieldpost migrate` created and no service uses yet.
--
-- Consequences and required changes:
--   - A unique constraint of a distributed table must contain the distribution column: that of devices does not. It
--     becomes one with the environment in front; a lookup of a device by its name alone queries every node.
--   - Triggers on distributed tables need citus.enable_unsafe_triggers, and their writes must be on the same node:
--     blob.reference, defect.command and delivery.device are colocated with store.object, so it is.
--   - Foreign keys between a distributed table and the counter are dropped: they do not contain the distribution column under
--     the same name, and those of reference tables may not lead to a distributed one.
--   - Identity columns of distributed tables must be bigint: int columns get their own sequence.
--   - realm.environment is the counter, which every transaction that writes objects updates. As a reference table each
--     update would go to every node in two phases. So it is distributed by its own id, and colocated with the
--     transaction's other writes.
--   - The relay polls for environments with changes, and a worker for due deferred keys, without naming one: both queries
--     go to every node. The statements of devices and of event processing name one.
--   - Notifications of new positions are sent on the node of the counter's shard. Readers find changes after a pause by
--     their poll, once a second.
--   - A move (docs/operators/moving.md) creates triggers while an environment is write-blocked; whether they block it on
--     every node was not tested.

BEGIN;

SET LOCAL citus.enable_unsafe_triggers = on;

-- Foreign keys to the counter: not between a distributed table and itself by another name, nor from reference tables.
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT conrelid::regclass AS name, conname FROM pg_constraint
        WHERE contype = 'f' AND confrelid = 'realm.environment'::regclass
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.name, found.conname);
    END LOOP;
END
$$;

-- A name is unique in the installation, which a distributed table cannot enforce. `fieldpost environment add` checks it
-- first, under an advisory lock.
ALTER TABLE realm.environment DROP CONSTRAINT environment_name_key;

DROP INDEX onboarding.refresh_token_device_idx;
CREATE UNIQUE INDEX refresh_token_device_idx ON onboarding.refresh_token (environment_id, device)
    WHERE device IS NOT NULL;

-- Citus allocates the numbers of distributed tables on every node separately, which needs bigint.
ALTER TABLE realm.realm ALTER id DROP IDENTITY;
CREATE SEQUENCE realm.realm_number AS int;
ALTER TABLE realm.realm ALTER id SET DEFAULT nextval('realm.realm_number');
ALTER TABLE access.person ALTER id DROP IDENTITY;
CREATE SEQUENCE access.person_number AS int;
ALTER TABLE access.person ALTER id SET DEFAULT nextval('access.person_number');
ALTER TABLE access.integration ALTER id DROP IDENTITY;
CREATE SEQUENCE access.integration_number AS int;
ALTER TABLE access.integration ALTER id SET DEFAULT nextval('access.integration_number');
ALTER TABLE realm.environment ALTER id DROP IDENTITY;
CREATE SEQUENCE realm.environment_number AS int;
ALTER TABLE realm.environment ALTER id SET DEFAULT nextval('realm.environment_number');

-- By environment: all data of one is on one node, so joins and the writes of a transaction stay there.
SELECT create_distributed_table('realm.environment', 'id');
SELECT create_distributed_table('realm.realm', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('access.person', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('store.object', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('store.change', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('blob.content', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('blob.reference', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('device.client', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('device.mutation', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('device.task_author', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('submission.attempt', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('submission.ledger', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('pipeline.parked', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('task.copy', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('task.note', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('audience.tree', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('audience.catalogue', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('audience.person', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('poll.run', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('poll.finished', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('poll.watermark', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.run', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.watermark', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.seen', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.mirror', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.attempt', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.command', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.own_run', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.own_watermark', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('delivery.device', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('delivery.shipment', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('backend.person', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('backend.defect_login', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('backend.defect_account', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('onboarding.refresh_token', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('onboarding.token_claims', 'environment_id', colocate_with => 'realm.environment');

-- On every node: small, read by every session, and looked up by keys other than the environment.
SELECT create_reference_table('realm.kind');
SELECT create_reference_table('realm.kind_version');
SELECT create_reference_table('realm.own_kind');
SELECT create_reference_table('access.provider');
SELECT create_reference_table('access.domain');
SELECT create_reference_table('access.address');
SELECT create_reference_table('access.integration');
SELECT create_reference_table('access.outline');
SELECT create_reference_table('realm.relay');
SELECT create_reference_table('realm.republish');
SELECT create_reference_table('backend.connection');
SELECT create_reference_table('backend.defect_tracker');
SELECT create_reference_table('backend.delivery');

COMMIT;

-- These stay local on the coordinator: they belong to the installation, or are looked up by a device's secret before its
-- environment is known.
-- local: realm.migration
-- local: realm.lineage
-- local: realm.relay_offset
-- local: pipeline.progress
-- local: pipeline.missed
-- local: onboarding.counter
-- local: onboarding.rate
-- local: onboarding.login
-- local: onboarding.event
-- local: onboarding.session
-- local: access.audit
-- local: realm.move
-- local: realm.move_part
