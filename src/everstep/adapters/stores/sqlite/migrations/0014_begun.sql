-- Calls that somebody has begun, of those that another process may be asked to make again: one beginning per attempt.

CREATE TABLE begun (
    task    TEXT NOT NULL,
    step    TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (task, step)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 14;
