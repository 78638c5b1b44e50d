-- The schema of `../../sqlite/schema.sql`, as PostgreSQL has it: the hot row of a task is narrow and changes in place (no
-- index holds a column that changes with every step), journals and payloads are append only.

CREATE TABLE migrations (
    number     bigint PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at bigint NOT NULL
);

INSERT INTO meta (key, value) VALUES ('linked_after', '0');

-- A member of an event. The text of an event may hold an escaped NUL, which `json` cannot give back.
CREATE FUNCTION told(body text, VARIADIC path text[]) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN replace(body, '\u0000', '\u0001')::json #>> path;

-- `beaten_at` is the last beat by the clock of the database, the other times are by the worker's own.
CREATE TABLE workers (
    rowid        bigint GENERATED ALWAYS AS IDENTITY,
    id           text COLLATE "C" PRIMARY KEY,
    name         text NOT NULL,
    host         text NOT NULL,
    pid          bigint NOT NULL,
    version      text NOT NULL,
    tools        text NOT NULL DEFAULT '[]',
    started_at   bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    beaten_at    bigint NOT NULL,
    released_at  bigint,
    fenced_at    bigint
);

-- The number of the last batch that each worker has committed: what became of a COMMIT whose answer was lost.
CREATE TABLE batches (
    worker text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL
) WITH (fillfactor = 50);

-- What must be done one after the other takes the lock of a row here.
CREATE TABLE turns (name text COLLATE "C" PRIMARY KEY) WITH (fillfactor = 50);

CREATE SEQUENCE task_numbers;

-- Places in the order of all commits; the first is nobody's.
CREATE SEQUENCE places;
SELECT nextval('places');

CREATE TABLE tasks (
    num           bigint PRIMARY KEY,
    id            text COLLATE "C" NOT NULL UNIQUE,
    owner         text COLLATE "C" NOT NULL,
    key           text COLLATE "C",
    plan_name     text COLLATE "C" NOT NULL,
    plan_digest   text COLLATE "C" NOT NULL,
    inputs_digest text COLLATE "C" NOT NULL,
    title         text NOT NULL,
    priority      bigint NOT NULL,
    steps         bigint NOT NULL,
    status        text COLLATE "C" NOT NULL CHECK (status IN ('queued', 'running', 'pausing', 'paused', 'stalled',
                                                  'cancelling', 'completed', 'failed', 'cancelled')),
    generation    bigint NOT NULL,
    epoch         bigint NOT NULL,
    worker        text COLLATE "C",
    last_seq      bigint NOT NULL,
    recoveries    bigint NOT NULL,
    done          bigint NOT NULL,
    due_at        bigint,
    created_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    started_at    bigint,
    ended_at      bigint,
    outcome       text,
    error_code    text,
    labels        text NOT NULL DEFAULT '{}',
    tools         text NOT NULL DEFAULT '[]',
    parent        text COLLATE "C",
    -- How often somebody else has written or spoken of a task that is held: its holder looks for it.
    told          bigint NOT NULL DEFAULT 0,
    CHECK ((ended_at IS NULL) = (status NOT IN ('completed', 'failed', 'cancelled')))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX tasks_by_key ON tasks (owner, key) WHERE key IS NOT NULL;
CREATE INDEX tasks_claimable ON tasks (owner, (created_at + 300000 * priority), num)
    WHERE worker IS NULL AND status IN ('queued', 'stalled', 'cancelling');
CREATE INDEX tasks_live ON tasks (owner) WHERE ended_at IS NULL;
CREATE INDEX tasks_held ON tasks (worker) WHERE worker IS NOT NULL;
CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tasks_by_owner ON tasks (owner, created_at, num);
CREATE INDEX tasks_by_plan ON tasks (owner, plan_name, created_at, num);
CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (owner, status, created_at, num) WHERE ended_at IS NOT NULL;

-- `id` is the place in the order of all commits.
CREATE TABLE events (
    id   bigint PRIMARY KEY DEFAULT nextval('places'),
    task bigint NOT NULL,
    seq  bigint NOT NULL,
    at   bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    step text COLLATE "C",
    body text NOT NULL,
    hash bytea
);

CREATE UNIQUE INDEX events_by_task ON events (task, seq);
CREATE INDEX events_failed ON events (id)
    WHERE type IN ('attempt.failed', 'attempt.timed_out', 'attempt.killed', 'attempt.abandoned', 'step.failed');

CREATE TABLE payloads (
    digest text COLLATE "C" PRIMARY KEY,
    body   bytea NOT NULL
);

CREATE TABLE pauses (
    rowid     bigint GENERATED ALWAYS AS IDENTITY,
    id        text COLLATE "C" PRIMARY KEY,
    task      bigint NOT NULL,
    step      text COLLATE "C",
    type      text NOT NULL,
    status    text NOT NULL CHECK (status IN ('open', 'answered', 'expired', 'withdrawn')),
    opened_at bigint NOT NULL,
    due_at    bigint,
    body      text NOT NULL
);

CREATE INDEX pauses_by_task ON pauses (task);
CREATE INDEX pauses_open ON pauses (opened_at) WHERE status = 'open';
CREATE INDEX pauses_due ON pauses (due_at) WHERE status = 'open' AND due_at IS NOT NULL;

CREATE TABLE rates (
    name    text COLLATE "C" PRIMARY KEY,
    arrival bigint NOT NULL
);

CREATE TABLE quotas (
    name text COLLATE "C" PRIMARY KEY,
    day  bigint NOT NULL,
    used bigint NOT NULL
);

CREATE TABLE breakers (
    id         text COLLATE "C" PRIMARY KEY,
    owner      text COLLATE "C" NOT NULL,
    state      text NOT NULL CHECK (state IN ('closed', 'open', 'half_open')),
    updated_at bigint NOT NULL,
    body       text NOT NULL
);

CREATE TABLE credentials (
    rowid        bigint GENERATED ALWAYS AS IDENTITY,
    id           text COLLATE "C" PRIMARY KEY,
    kind         text NOT NULL CHECK (kind IN ('token', 'session', 'code', 'ticket')),
    hash         bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    name         text NOT NULL,
    owner        text COLLATE "C" NOT NULL,
    actor_kind   text NOT NULL CHECK (actor_kind IN ('human', 'llm', 'service')),
    actor_id     text NOT NULL,
    scopes       text NOT NULL,
    created_at   bigint NOT NULL,
    expires_at   bigint,
    last_used_at bigint,
    parent       text COLLATE "C",
    path         text
);

CREATE TABLE history (
    bucket   bigint NOT NULL,
    owner    text COLLATE "C" NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    outcome  text COLLATE "C" NOT NULL,
    size     text COLLATE "C" NOT NULL,
    plan     text COLLATE "C" NOT NULL,
    step     text COLLATE "C" NOT NULL,
    sketch   text NOT NULL,
    n        double precision NOT NULL,
    total_ms double precision NOT NULL,
    PRIMARY KEY (bucket, owner, kind, name, outcome, size, plan, step)
);

CREATE TABLE signals (
    num   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    id    text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    key   text COLLATE "C",
    at    bigint NOT NULL,
    heard bigint NOT NULL DEFAULT 0,
    body  text NOT NULL,
    UNIQUE (owner, id)
);
CREATE INDEX signals_unheard ON signals (owner, event, num) WHERE heard = 0;
CREATE INDEX signals_by_age ON signals (at);

CREATE TABLE listeners (
    task    text COLLATE "C" NOT NULL,
    step    text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    owner   text COLLATE "C" NOT NULL,
    event   text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    any_key boolean NOT NULL,
    signal  bigint REFERENCES signals (num),
    PRIMARY KEY (task, step, attempt)
);
CREATE INDEX listeners_free ON listeners (owner, event) WHERE signal IS NULL;
CREATE INDEX listeners_called ON listeners (signal) WHERE signal IS NOT NULL;

CREATE TABLE handles (
    id         text COLLATE "C" PRIMARY KEY,
    owner      text COLLATE "C" NOT NULL,
    task       text COLLATE "C" NOT NULL,
    generation bigint NOT NULL,
    ttl_ms     bigint NOT NULL,
    created_at bigint NOT NULL,
    notes      text NOT NULL DEFAULT '{}',
    UNIQUE (task, generation)
);

CREATE TABLE spent_keys (
    owner text COLLATE "C" NOT NULL,
    key   text COLLATE "C" NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (owner, key)
);
