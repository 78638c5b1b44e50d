-- One list, newest first; the parent stays in the journal.

DROP TABLE spent_keys;
DROP INDEX tasks_changed;
DROP INDEX tasks_ended;
DROP INDEX tasks_by_parent;
DROP INDEX tasks_by_plan;
DROP INDEX tasks_by_owner;
CREATE INDEX tasks_by_age ON tasks (created_at, num);
ALTER TABLE tasks DROP COLUMN parent;

PRAGMA user_version = 11;
