-- The queue by priority and age, what lists ask for, how many tasks an owner has, and rates.

-- A task waits as if it had come `priority` times five minutes later (`domain/queue`).
DROP INDEX tasks_claimable;
CREATE INDEX tasks_claimable ON tasks (created_at + 300000 * priority, num)
    WHERE worker IS NULL AND status IN ('queued', 'stalled', 'cancelling');
CREATE INDEX tasks_live ON tasks (owner) WHERE ended_at IS NULL;

-- JSON: an object of texts, and a list of names.
ALTER TABLE tasks ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
ALTER TABLE tasks ADD COLUMN tools TEXT NOT NULL DEFAULT '[]';
UPDATE tasks SET
    labels = coalesce((SELECT e.body -> '$.data.labels' FROM events e WHERE e.task = num AND e.seq = 1), '{}'),
    tools = coalesce((SELECT json_group_array(DISTINCT s.value ->> '$.tool')
                      FROM events e, json_each(e.body, '$.data.plan.steps') s
                      WHERE e.task = num AND e.seq = 1 AND s.value ->> '$.tool' IS NOT NULL), '[]');

-- One row per owner and provider; `arrival` in microseconds since 1970 (`domain/rate`).
CREATE TABLE rates (
    name    TEXT PRIMARY KEY,
    arrival INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 5;
