-- Back to the strict order by priority; labels and tools stay in the journal.

DROP TABLE rates;
DROP INDEX tasks_live;
DROP INDEX tasks_claimable;
ALTER TABLE tasks DROP COLUMN tools;
ALTER TABLE tasks DROP COLUMN labels;
CREATE INDEX tasks_claimable ON tasks (priority, created_at, num)
    WHERE worker IS NULL AND status IN ('queued', 'stalled', 'cancelling');

PRAGMA user_version = 4;
