-- The same index, told by a list.

DROP INDEX events_failed;
CREATE INDEX events_failed ON events (id)
    WHERE type IN ('attempt.failed', 'attempt.timed_out', 'attempt.killed', 'attempt.abandoned', 'step.failed');

PRAGMA user_version = 10;
