-- Handles: what clients outside call a task.

CREATE TABLE handles (
    id         TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    task       TEXT NOT NULL,
    generation INTEGER NOT NULL,
    ttl_ms     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    notes      TEXT NOT NULL DEFAULT '{}',
    UNIQUE (task, generation)
) STRICT;

PRAGMA user_version = 10;
