-- How long things took and how they ended, as sketches. All of it follows from the journal; `meta` says up to where.
-- `bucket` counts hours since 1970; 0: all of it at once, with what was long ago fading (`domain/history`).
CREATE TABLE history (
    bucket   INTEGER NOT NULL,
    owner    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    outcome  TEXT NOT NULL,
    size     TEXT NOT NULL,
    plan     TEXT NOT NULL,
    step     TEXT NOT NULL,
    sketch   TEXT NOT NULL,
    n        REAL NOT NULL,
    total_ms REAL NOT NULL,
    PRIMARY KEY (bucket, owner, kind, name, outcome, size, plan, step)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 7;
