-- Distributes the tables of a migrated database over the nodes of a Citus cluster (https://docs.citusdata.com), by
-- environment: an environment lives on one node, with all that its statements touch.
--
-- THIS FILE WAS NOT RUN. It was written from Citus's documentation; a test sees to it that it names every table of the
-- schema, once. Try it on a copy, with your own load, before you rely on it. What is known not to work is said where it
-- is met. To spread environments over plain PostgreSQL servers instead, which needs none of this, see docs/moving.md.
--
--   psql -v ON_ERROR_STOP=1 -f deploy/citus.sql     on the coordinator, after `fieldpost migrate --finish`
--
-- Connect all services to the coordinator: what is not distributed is there alone.

CREATE EXTENSION IF NOT EXISTS citus;

-- 1. What Citus does not take.

-- Foreign keys lead from distributed tables to distributed or reference tables alone, and from local tables to local
-- ones. These lead from what stays local to an environment's row.
ALTER TABLE access.address DROP CONSTRAINT address_environment_id_fkey;
ALTER TABLE access.domain DROP CONSTRAINT domain_environment_id_fkey;
ALTER TABLE access.integration DROP CONSTRAINT integration_environment_id_fkey;
ALTER TABLE access.provider DROP CONSTRAINT provider_environment_id_fkey;
ALTER TABLE onboarding.refresh_token DROP CONSTRAINT refresh_token_environment_id_person_id_fkey;
ALTER TABLE onboarding.session DROP CONSTRAINT session_environment_id_fkey;
ALTER TABLE onboarding.token_claims DROP CONSTRAINT token_claims_environment_id_fkey;

-- A unique key of a distributed table has its distribution column. The name of an environment is unique by what
-- `fieldpost environment add` looks up; two that are added at once under one name would both be there.
ALTER TABLE realm.environment DROP CONSTRAINT environment_name_key;

-- Triggers of distributed tables are not supported. These keep which objects name an image, and the order of people's
-- commands to trackers: without them images that are named are removed as if nobody did, and commands are done in any
-- order. So, on Citus: set retention.images to the longest time there is, and give no environment a tracker. (Triggers
-- on each shard, as Citus's documentation has them, would have to write to the shard beside it.)
DROP TRIGGER blob_named ON store.object;
DROP TRIGGER blob_changed ON store.object;
DROP TRIGGER blob_gone ON store.object;
DROP TRIGGER command_written ON store.object;
DROP TRIGGER command_gone ON store.object;

-- 2. An environment's own row, whose lock is its order. All others are beside it.
SELECT create_distributed_table('realm.environment', 'id');

-- 3. What belongs to one environment, and is asked for by it.
SELECT create_distributed_table('realm.realm', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('realm.relay', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('realm.republish', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('store.object', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('store.change', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('access.person', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('audience.catalogue', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('audience.person', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('audience.tree', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('backend.connection', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('backend.defect_account', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('backend.defect_login', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('backend.defect_tracker', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('backend.delivery', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('backend.person', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('blob.content', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('blob.reference', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.attempt', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.command', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.mirror', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.own_run', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.own_watermark', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.run', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.seen', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('defect.watermark', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('delivery.shipment', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('device.client', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('device.mutation', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('pipeline.parked', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('poll.finished', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('poll.run', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('poll.watermark', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('submission.attempt', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('submission.ledger', 'environment_id', colocate_with => 'realm.environment');
SELECT create_distributed_table('task.copy', 'environment_id', colocate_with => 'realm.environment');

-- 4. What every node reads, and hardly anybody writes.
SELECT create_reference_table('realm.kind');

-- 5. What stays on the coordinator.
-- It is looked up before the environment is known: by an address, a domain, an issuer, or a key.
--   local: access.address access.domain access.integration access.provider
-- People on their way in: some thousand rows, of the last minutes.
--   local: onboarding.counter onboarding.event onboarding.login onboarding.rate onboarding.refresh_token
--   local: onboarding.session onboarding.token_claims
-- Of the installation as a whole: its log, its schema and history, how far Kafka is.
--   local: access.audit realm.lineage realm.migration realm.relay_offset pipeline.missed pipeline.progress

-- 6. Statements that ask all nodes, since they ask for all environments: which have news (the relay, each gateway), which
-- keys are due (each group's workers), what retention removes, and what lag-monitor tells. They grow with the number of
-- nodes, and not with their content. Statements that join an environment's rows with what is local (who comes in, and
-- with which provider) want `citus.enable_local_reference_table_foreign_keys` and Citus's local tables: try them first.
