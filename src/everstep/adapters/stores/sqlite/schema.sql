-- The schema as it stands: the sum of migrations/, held against it by a test. Readable by SQLite 3.40.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE workers (
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    host         TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    version      TEXT NOT NULL,
    started_at   INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    released_at  INTEGER,
    fenced_at    INTEGER
) STRICT;

-- What lists and claims need of a task; everything else is its journal. Instants are milliseconds since 1970, UTC.
CREATE TABLE tasks (
    num           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    owner         TEXT NOT NULL,
    key           TEXT,
    plan_name     TEXT NOT NULL,
    plan_digest   TEXT NOT NULL,
    inputs_digest TEXT NOT NULL,
    title         TEXT NOT NULL,
    priority      INTEGER NOT NULL,
    steps         INTEGER NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('queued', 'running', 'pausing', 'paused', 'stalled',
                                                  'cancelling', 'completed', 'failed', 'cancelled')),
    generation    INTEGER NOT NULL,
    epoch         INTEGER NOT NULL,
    worker        TEXT,
    last_seq      INTEGER NOT NULL,
    recoveries    INTEGER NOT NULL,
    done          INTEGER NOT NULL,
    due_at        INTEGER,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    started_at    INTEGER,
    ended_at      INTEGER,
    outcome       TEXT,
    error_code    TEXT,
    -- JSON: an object of texts, and a list of names.
    labels        TEXT NOT NULL DEFAULT '{}',
    tools         TEXT NOT NULL DEFAULT '[]',
    parent        TEXT,
    CHECK ((ended_at IS NULL) = (status NOT IN ('completed', 'failed', 'cancelled')))
) STRICT;

-- No index holds a column that changes with every step.
CREATE UNIQUE INDEX tasks_by_key ON tasks (owner, key) WHERE key IS NOT NULL;
-- A task waits as if it had come `priority` times five minutes later (`domain/queue`).
CREATE INDEX tasks_claimable ON tasks (created_at + 300000 * priority, num)
    WHERE worker IS NULL AND status IN ('queued', 'stalled', 'cancelling');
CREATE INDEX tasks_live ON tasks (owner) WHERE ended_at IS NULL;
CREATE INDEX tasks_held ON tasks (worker) WHERE worker IS NOT NULL;
CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;
-- Every list begins with its owner; a search reads nothing but this index.
CREATE INDEX tasks_by_owner ON tasks (owner, created_at, num, title, id, error_code);
CREATE INDEX tasks_by_plan ON tasks (owner, plan_name, created_at, num);
CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent IS NOT NULL;
-- Written once, when a task ends.
CREATE INDEX tasks_ended ON tasks (owner, status, created_at, num) WHERE ended_at IS NOT NULL;
CREATE INDEX tasks_changed ON tasks (owner, updated_at, num) WHERE ended_at IS NOT NULL;

-- The journal: append only, in commit order; no foreign key, which would cost a look-up per event. `body` is the event as it is sent, `hash` links it to the line before; the other columns repeat it.
CREATE TABLE events (
    id   INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    type TEXT NOT NULL,
    step TEXT,
    body TEXT NOT NULL,
    hash BLOB
) STRICT;

CREATE UNIQUE INDEX events_by_task ON events (task, seq);

CREATE TABLE pauses (
    id        TEXT PRIMARY KEY,
    task      INTEGER NOT NULL REFERENCES tasks (num),
    step      TEXT,
    type      TEXT NOT NULL,
    status    TEXT NOT NULL CHECK (status IN ('open', 'answered', 'expired', 'withdrawn')),
    opened_at INTEGER NOT NULL,
    due_at    INTEGER,
    body      TEXT NOT NULL
) STRICT;

CREATE INDEX pauses_by_task ON pauses (task);
CREATE INDEX pauses_open ON pauses (opened_at) WHERE status = 'open';
CREATE INDEX pauses_due ON pauses (due_at) WHERE status = 'open' AND due_at IS NOT NULL;

-- One row per owner and provider; `arrival` in microseconds since 1970 (`domain/rate`).
CREATE TABLE rates (
    name    TEXT PRIMARY KEY,
    arrival INTEGER NOT NULL
) STRICT;

-- One row per step of a plan, pending ones included, derived from the journal; for people and their tools.
CREATE VIEW task_executions AS
WITH planned (num, task_id, created_at, step_number, step_id) AS (
    SELECT t.num, t.id, c.body ->> '$.at', s.key + 1, s.value ->> '$.id'
    FROM tasks t
    JOIN events c ON c.task = t.num AND c.seq = 1
    JOIN json_each(c.body, '$.data.plan.steps') s
    UNION ALL
    SELECT t.num, t.id, c.body ->> '$.at',
           json_array_length(c.body, '$.data.plan.steps') + f.key + 1, f.value ->> '$.id'
    FROM tasks t
    JOIN events c ON c.task = t.num AND c.seq = 1
    JOIN json_each(c.body, '$.data.plan.finally') f
),
told AS (
    SELECT p.*,
           (SELECT max(e.seq) FROM events e
            WHERE e.task = p.num AND e.step = p.step_id
              AND e.type IN ('step.started', 'step.waiting', 'attempt.started', 'step.retry_scheduled', 'pause.opened',
                             'pause.answered', 'pause.expired', 'step.completed', 'step.failed', 'step.skipped')) AS last_seq,
           (SELECT e.body ->> '$.at' FROM events e, json_each(e.body, '$.data.skipped') k
            WHERE e.task = p.num AND e.type IN ('task.cancelled', 'task.failed') AND k.value = p.step_id) AS cut_at
    FROM planned p
)
SELECT p.task_id || '/' || p.step_id AS id,
       p.task_id,
       p.step_number,
       p.step_id,
       CASE
           WHEN e.type IN ('step.completed', 'step.failed', 'step.skipped') THEN substr(e.type, 6)
           WHEN p.cut_at IS NOT NULL THEN 'skipped'
           WHEN e.type = 'pause.opened' THEN 'paused'
           WHEN e.type IS NOT NULL THEN 'running'
           ELSE 'pending'
       END AS status,
       (SELECT s.body ->> '$.at' FROM events s
        WHERE s.task = p.num AND s.step = p.step_id AND s.type IN ('step.started', 'attempt.started')
        ORDER BY s.seq LIMIT 1) AS started_at,
       CASE
           WHEN e.type IN ('step.completed', 'step.failed', 'step.skipped') THEN e.body ->> '$.at'
           ELSE p.cut_at
       END AS completed_at,
       CASE
           WHEN e.type = 'step.completed'
               THEN coalesce(e.body -> '$.data.output.value', e.body -> '$.data.output')
       END AS result,
       CASE
           WHEN e.type IS NOT 'step.completed' THEN
               (SELECT s.body ->> '$.data.error.message' FROM events s
                WHERE s.task = p.num AND s.step = p.step_id AND s.body -> '$.data.error' IS NOT NULL
                ORDER BY s.seq DESC LIMIT 1)
       END AS error_message,
       (SELECT count(*) FROM events s
        WHERE s.task = p.num AND s.step = p.step_id AND s.type = 'step.retry_scheduled'
          AND s.body ->> '$.data.counted') AS retry_count,
       p.created_at
FROM told p
LEFT JOIN events e ON e.task = p.num AND e.seq = p.last_seq;

-- Circuit breakers that are in trouble; what they mean is `domain/breaker`'s business.
CREATE TABLE breakers (
    id         TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('closed', 'open', 'half_open')),
    updated_at INTEGER NOT NULL,
    body       TEXT NOT NULL
) STRICT;


-- Tokens, sessions, sign-in codes and tickets, by the SHA-256 of their values (`domain/access`).
CREATE TABLE credentials (
    id           TEXT PRIMARY KEY,
    kind         TEXT NOT NULL CHECK (kind IN ('token', 'session', 'code', 'ticket')),
    hash         BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    name         TEXT NOT NULL,
    owner        TEXT NOT NULL,
    actor_kind   TEXT NOT NULL CHECK (actor_kind IN ('human', 'llm', 'service')),
    actor_id     TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    parent       TEXT,
    path         TEXT
) STRICT;

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

-- One row per owner and provider: calls of its last day, counted in days since 1970 (`domain/rate`).
CREATE TABLE quotas (
    name TEXT PRIMARY KEY,
    day  INTEGER NOT NULL,
    used INTEGER NOT NULL
) STRICT;

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

-- What clients outside call a task, one name per generation; `notes` is JSON.
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

-- Errors over all tasks, newest first; a line of the journal that tells of none is not in it. No `IN`: its list would be
-- built anew for every row that is written.
CREATE INDEX events_failed ON events (id)
    WHERE type = 'attempt.failed' OR type = 'attempt.timed_out' OR type = 'attempt.killed'
       OR type = 'attempt.abandoned' OR type = 'step.failed';

-- Keys of tasks that were deleted: never an older result, and not a new one either for a while.
CREATE TABLE spent_keys (
    owner TEXT NOT NULL,
    key   TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT;

-- How far a task was said to be, in ten-thousandths, and how far the calls of a step have come.

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

-- Calls that somebody has begun, of those that another process may be asked to make again: one beginning per attempt.

CREATE TABLE begun (
    task    TEXT NOT NULL,
    step    TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (task, step)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 14;
