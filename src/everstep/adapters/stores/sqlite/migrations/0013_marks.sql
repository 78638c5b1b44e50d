-- Marks: how far a task was said to be, in ten-thousandths, and how far the calls of a step have come.

CREATE TABLE progress (
    task       TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    share      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
    task    TEXT NOT NULL,
    step    TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    tool    TEXT NOT NULL,
    input   TEXT NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (task, step)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 13;
