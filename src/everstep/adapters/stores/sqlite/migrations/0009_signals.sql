-- Signals from outside, and attempts of steps that wait for one; who is meant for whom is said in one place, `signal`.
CREATE TABLE signals (
    num   INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id    TEXT NOT NULL,
    event TEXT NOT NULL,
    key   TEXT,
    at    INTEGER NOT NULL,
    heard INTEGER NOT NULL DEFAULT 0,
    body  TEXT NOT NULL,
    UNIQUE (owner, id)
) STRICT;
CREATE INDEX signals_unheard ON signals (owner, event, num) WHERE heard = 0;
CREATE INDEX signals_by_age ON signals (at);

CREATE TABLE listeners (
    task    TEXT NOT NULL,
    step    TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    owner   TEXT NOT NULL,
    event   TEXT NOT NULL,
    key     TEXT NOT NULL,
    any_key INTEGER NOT NULL,
    signal  INTEGER REFERENCES signals (num),
    PRIMARY KEY (task, step, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX listeners_free ON listeners (owner, event) WHERE signal IS NULL;
CREATE INDEX listeners_called ON listeners (signal) WHERE signal IS NOT NULL;

PRAGMA user_version = 9;
