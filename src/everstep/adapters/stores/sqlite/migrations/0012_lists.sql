-- Lists of many tasks, by owner, plan, parent, status and time; and keys that outlive their tasks.

ALTER TABLE tasks ADD COLUMN parent TEXT;
UPDATE tasks SET parent = (SELECT e.body ->> '$.data.parent.task' FROM events e WHERE e.task = num AND e.seq = 1);

DROP INDEX tasks_by_age;
-- Every list begins with its owner; a search reads nothing but this index.
CREATE INDEX tasks_by_owner ON tasks (owner, created_at, num, title, id, error_code);
CREATE INDEX tasks_by_plan ON tasks (owner, plan_name, created_at, num);
CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent IS NOT NULL;
-- Written once, when a task ends.
CREATE INDEX tasks_ended ON tasks (owner, status, created_at, num) WHERE ended_at IS NOT NULL;
CREATE INDEX tasks_changed ON tasks (owner, updated_at, num) WHERE ended_at IS NOT NULL;

-- Keys of tasks that were deleted: never an older result, and not a new one either for a while.
CREATE TABLE spent_keys (
    owner TEXT NOT NULL,
    key   TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT;

PRAGMA user_version = 12;
