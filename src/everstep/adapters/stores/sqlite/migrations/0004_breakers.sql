-- Breakers, and errors over all tasks.

-- Circuit breakers that are in trouble; what they mean is `domain/breaker`'s business.
CREATE TABLE breakers (
    id         TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('closed', 'open', 'half_open')),
    updated_at INTEGER NOT NULL,
    body       TEXT NOT NULL
) STRICT;

-- Errors over all tasks, newest first; a line of the journal that tells of none is not in it.
CREATE INDEX events_failed ON events (id)
    WHERE type IN ('attempt.failed', 'attempt.timed_out', 'attempt.killed', 'attempt.abandoned', 'step.failed');

PRAGMA user_version = 4;
