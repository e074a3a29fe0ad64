-- Tasks' copies, and from a person's object to the person.

CREATE SCHEMA task;

-- One row per master task: where its copy is, and what both sides agreed on last.
CREATE TABLE task.copy (
    environment_id  int NOT NULL,
    task_id         uuid NOT NULL,
    -- Goes up with each change of the row: what a decision was made from.
    version         bigint NOT NULL,
    -- Where the copy is; null: there is none.
    realm_id        int,
    -- What the master named when it was decided last.
    team_id         uuid,
    assignee_id     uuid,
    is_completed    boolean NOT NULL,
    completion_date text,
    completed_by    uuid,
    -- When its completion was heard of; null while it is not done.
    completed_at    timestamptz,
    PRIMARY KEY (environment_id, task_id)
) WITH (fillfactor = 60);
-- Which tasks a team or a person is named by, for when it goes; and which were completed long ago.
CREATE INDEX ON task.copy (environment_id, team_id) WHERE team_id IS NOT NULL;
CREATE INDEX ON task.copy (environment_id, assignee_id) WHERE assignee_id IS NOT NULL;
CREATE INDEX ON task.copy (environment_id, completed_at) WHERE completed_at IS NOT NULL AND realm_id IS NOT NULL;
CREATE INDEX ON task.copy (environment_id, completed_at) WHERE completed_at IS NOT NULL AND realm_id IS NULL;

-- Whose own realm it is that a person's id names.
CREATE UNIQUE INDEX ON access.person (environment_id, object_id);

-- Which team's realm it is that a membership's id names: its tombstone has the last eight bytes of the team's id only.
CREATE INDEX ON realm.realm (environment_id, right(path, 17)) WHERE starts_with(path, '/teams/');

-- Nobody has heard of people, teams, tasks and positions that are there: all of them are published.
INSERT INTO realm.republish (environment_id, topic)
SELECT e.id, t.topic
FROM realm.environment e
CROSS JOIN unnest(ARRAY['location.events', 'share.events', 'task.events', 'team.events']) AS t(topic)
ON CONFLICT DO NOTHING;
