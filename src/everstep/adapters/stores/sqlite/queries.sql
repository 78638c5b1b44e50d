-- Statements that only SQLite understands, or that mean what is meant only here; the others are in `../sql/queries.sql`.

-- name: last_num
-- The newest task; 0 if there is none.
SELECT coalesce(max(num), 0) FROM tasks;

-- name: push_rate
-- The provider wants to be left alone until then.
INSERT INTO rates (name, arrival) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET arrival = max(arrival, excluded.arrival);

-- name: find_guard
-- What a write must find unchanged.
SELECT num, status, generation, epoch, worker, last_seq,
       (SELECT hash FROM events e WHERE e.task = tasks.num AND e.seq = tasks.last_seq)
FROM tasks WHERE id = ?;

-- name: command_held_task
-- A command beside a holder: its figures stand, but for what the command adds to them.
UPDATE tasks
SET status = :status, generation = :generation, ended_at = :ended_at, outcome = :outcome, error_code = :error_code,
    last_seq = :last_seq, updated_at = :at, done = done + :ends, recoveries = iif(:outcomes, 0, recoveries)
WHERE num = :num AND last_seq = :old_last_seq;

-- name: claim_candidates
-- Claimable tasks by priority and age (`domain/queue`), straight from the partial index.
SELECT num, id, status, generation, epoch, last_seq,
       (SELECT hash FROM events e WHERE e.task = tasks.num AND e.seq = tasks.last_seq), recoveries
FROM tasks
WHERE worker IS NULL AND status IN ('queued', 'stalled', 'cancelling')
ORDER BY created_at + 300000 * priority, num;

-- name: claim_candidates_of
-- The same among named tasks only.
SELECT num, tasks.id, status, generation, epoch, last_seq,
       (SELECT hash FROM events e WHERE e.task = tasks.num AND e.seq = tasks.last_seq), recoveries
FROM json_each(:ids) AS wanted CROSS JOIN tasks ON tasks.id = wanted.value
WHERE worker IS NULL AND status IN ('queued', 'stalled', 'cancelling')
ORDER BY created_at + 300000 * priority, num;

-- name: warn_pause
-- It will run out then; the copy of the question says so too.
UPDATE pauses SET due_at = ?, body = json_set(body, '$.expires_at', ?) WHERE id = ? AND task = ? AND status = 'open';

-- name: insert_worker
-- One incarnation of one process; its name is never used twice.
INSERT INTO workers (id, name, host, pid, version, started_at, heartbeat_at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: beat_worker
-- A fenced or released incarnation never returns.
UPDATE workers SET heartbeat_at = :at WHERE id = :id AND fenced_at IS NULL AND released_at IS NULL;

-- name: fence_workers
-- Fence first, then move their tasks: whoever was silent since `before`, but never oneself.
UPDATE workers SET fenced_at = :at
WHERE id != :me AND fenced_at IS NULL AND released_at IS NULL AND heartbeat_at < :before;

-- name: are_workers_silent
-- Whether there is anybody to fence; most of the time there is not, and nothing is written.
SELECT 1 FROM workers
WHERE id != :me AND fenced_at IS NULL AND released_at IS NULL AND heartbeat_at < :before LIMIT 1;

-- name: last_beat
-- Of incarnations that may still be alive.
SELECT max(heartbeat_at) FROM workers WHERE fenced_at IS NULL AND released_at IS NULL;

-- name: load_tasks
-- Whole journals of many tasks in one pass. The index gives each journal in order of seq, so nothing is sorted; if it
-- ever did not, the fold would refuse what comes.
SELECT t.id, t.owner, e.body
FROM json_each(:ids) AS wanted
CROSS JOIN tasks t ON t.id = wanted.value
CROSS JOIN events e INDEXED BY events_by_task ON e.task = t.num;

-- name: read_tail
-- All journals as one line, from a place on.
SELECT e.id, t.owner, t.id, e.seq, e.type, e.step, e.body
FROM events e CROSS JOIN tasks t ON t.num = e.task
WHERE e.id > :after AND (:owner IS NULL OR t.owner = :owner)
ORDER BY e.id LIMIT :limit;

-- name: tail_end
-- The newest event of all.
SELECT e.id, t.owner, t.id, e.seq, e.type, e.step, e.body
FROM events e CROSS JOIN tasks t ON t.num = e.task
ORDER BY e.id DESC LIMIT 1;

-- name: of_tasks
-- A part of every list of tasks: which of them are asked for. What an index holds comes first.
      (:text IS NULL OR instr(lower(title), :text) OR instr(id, :text) OR instr(lower(error_code), :text))
  AND (:since IS NULL OR created_at >= :since)
  AND (:until IS NULL OR created_at < :until)
  AND (:plan_name IS NULL OR plan_name = :plan_name)
  AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
  AND (:plan_digest IS NULL OR plan_digest = :plan_digest)
  AND (:inputs_digest IS NULL OR inputs_digest = :inputs_digest)
  AND (:parent IS NULL OR parent = :parent)
  AND (:tool IS NULL OR EXISTS (SELECT 1 FROM json_each(tools) WHERE value = :tool))
  AND (:label IS NULL OR EXISTS (SELECT 1 FROM json_each(labels) WHERE key = :label AND value = :labelled))
  AND (:reason IS NULL OR EXISTS (SELECT 1 FROM pauses p WHERE p.task = tasks.num AND p.status = 'open' AND p.type = :reason))
  AND (NOT :needs_you OR EXISTS (SELECT 1 FROM pauses p, json_each(p.body, '$.may_answer') may
                                 WHERE p.task = tasks.num AND p.status = 'open' AND may.value = 'human'
                                   AND p.type NOT IN ('userRequested', 'resourcePressure')))

-- name: list_some_tasks
-- Where few can be meant: children of one task, tasks with an open pause, tasks that live. These are found first.
WITH some (num) AS MATERIALIZED (
    SELECT num FROM tasks WHERE :parent IS NOT NULL AND parent = :parent
    UNION
    SELECT task FROM pauses INDEXED BY pauses_open WHERE :paused AND status = 'open'
    UNION
    SELECT num FROM tasks INDEXED BY tasks_live WHERE :live AND owner = :owner AND ended_at IS NULL
)
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, tasks.num
FROM some CROSS JOIN tasks ON tasks.num = some.num
WHERE owner = :owner
  AND iif(:sort = 'created_at', (created_at, tasks.num) > (:at, :num),
          (iif(:sort = '-updated_at', updated_at, created_at), tasks.num) < (:at, :num)) AND
-- with: of_tasks
ORDER BY iif(:sort = 'created_at', created_at, iif(:sort = '-updated_at', -updated_at, -created_at)),
         iif(:sort = 'created_at', tasks.num, -tasks.num)
LIMIT :limit;

-- name: find_task_by_prefix
-- Two are enough to know that a prefix is ambiguous; some more to name them.
SELECT id FROM tasks WHERE id >= :name AND id < :name || char(1114111) AND owner = :owner ORDER BY id LIMIT 10;

-- name: last_event
-- Rows are only appended, so the last key counts them.
SELECT coalesce(max(id), 0) FROM events;

-- name: file_size
-- Of the database, without its WAL.
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size();

-- name: held_seqs
-- How far the journals of these tasks go.
SELECT t.id, t.last_seq FROM json_each(:ids) AS wanted CROSS JOIN tasks t ON t.id = wanted.value;

-- name: set_application_id
-- Written while the journal is still the old kind, so that the first page of the file itself says whose it is.
PRAGMA application_id = 0x45565354;

-- name: use_wal
-- Readers do not wait for the writer, and a commit is one flush.
PRAGMA journal_mode = WAL;

-- name: set_writer
-- Of the only connection that writes. A big lock is waited for; foreign SQL in the schema is not trusted.
PRAGMA busy_timeout = 5000;
PRAGMA foreign_keys = ON;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
PRAGMA wal_autocheckpoint = 1000;
PRAGMA fullfsync = ON;
PRAGMA checkpoint_fullfsync = ON;

-- name: set_reader
-- Nothing but reading, and few pages remembered: the system has them, and there are several readers. First of all the
-- patience: whatever comes next looks into the file, which somebody may hold who recovers it after a crash.
PRAGMA busy_timeout = 5000;
PRAGMA cache_size = -512;
PRAGMA query_only = ON;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;

-- name: sync_power
-- Commits survive the loss of power.
PRAGMA synchronous = FULL;

-- name: sync_process
-- Commits survive the death of the process.
PRAGMA synchronous = NORMAL;

-- name: get_synchronous
-- To be held against the profile.
PRAGMA synchronous;

-- name: get_journal_mode
-- To be held against the profile.
PRAGMA journal_mode;

-- name: get_application_id
-- Whose file this is.
PRAGMA application_id;

-- name: get_user_version
-- The number of its schema.
PRAGMA user_version;

-- name: quick_check
-- Is the file sound? Fast.
PRAGMA quick_check;

-- name: integrity_check
-- Is the file sound? All of it.
PRAGMA integrity_check;

-- name: truncate_wal
-- When it has grown and nobody writes.
PRAGMA wal_checkpoint(TRUNCATE);

-- name: begin
-- The write lock at once, so that a batch never fails half way for want of it.
BEGIN IMMEDIATE;

-- name: use_rollback_journal
-- For copies: a single file, nothing beside it.
PRAGMA journal_mode = DELETE;

-- name: find_breaker
-- As it stands, inside the transaction that asks it.
SELECT body FROM breakers WHERE id = ?;

-- name: list_errors
-- Newest first, from the partial index: ends of attempts that were called, and steps that failed without a call. Which
-- tool it was stands in the intent, or else in the plan.
SELECT e.id, t.id,
       coalesce((SELECT s.body ->> '$.data.tool' FROM events s
                 WHERE s.task = e.task AND s.seq < e.seq AND s.type = 'attempt.started' AND s.step = e.step
                 ORDER BY s.seq DESC LIMIT 1),
                (SELECT p.value ->> '$.tool' FROM events c, json_each(c.body, '$.data.plan.steps') p
                 WHERE c.task = e.task AND c.seq = 1 AND p.value ->> '$.id' = e.step)) AS called,
       e.body
FROM events e INDEXED BY events_failed CROSS JOIN tasks t ON t.num = e.task
WHERE (e.type = 'attempt.failed' OR e.type = 'attempt.timed_out' OR e.type = 'attempt.killed'
       OR e.type = 'attempt.abandoned' OR e.type = 'step.failed')
  AND (:before IS NULL OR e.id < :before)
  AND (:since IS NULL OR e.at >= :since)
  AND (:owner IS NULL OR t.owner = :owner)
  AND (:task IS NULL OR t.id = :task)
  AND (:category IS NULL OR e.body ->> '$.data.error.category' = :category)
  AND (:code IS NULL OR e.body ->> '$.data.error.code' = :code)
  AND (:tool IS NULL OR called = :tool)
  AND iif(e.type = 'step.failed',
          e.body ->> '$.data.attempt' IS NULL AND e.body ->> '$.data.error.attempt' IS NULL,
          e.body ->> '$.data.called' AND e.body ->> '$.data.error.code' NOT IN ('needs_input', 'not_called'))
ORDER BY e.id DESC LIMIT :limit;

-- name: gather_upto
-- The end of the next part of the journal to be gathered.
SELECT min(coalesce(max(id), 0), :after + :limit) FROM events;

-- name: gather_calls
-- Calls that ended, alike ones counted; times from intent to outcome, so that those of a plain task add up. Tools whose
-- calls differ in size are left to `gather_sized`.
SELECT t.owner, t.plan_name, iif(instr(e.step, '['), substr(e.step, 1, instr(e.step, '[') - 1), e.step) AS said,
       s.body ->> '$.data.tool' AS tool, e.type, e.at / 3600000 AS hour, max(0, e.at - s.at) AS ms, count(*)
FROM events e
CROSS JOIN tasks t ON t.num = e.task
CROSS JOIN events s ON s.id = (SELECT i.id FROM events i
                               WHERE i.task = e.task AND i.seq < e.seq AND i.type = 'attempt.started' AND i.step = e.step
                               ORDER BY i.seq DESC LIMIT 1)
WHERE e.id > :after AND e.id <= :upto
  AND e.type IN ('step.completed', 'attempt.failed', 'attempt.timed_out', 'attempt.killed', 'attempt.abandoned')
  AND iif(e.type = 'step.completed',
          e.body ->> '$.data.attempt' IS NOT NULL AND e.body ->> '$.data.via' IN ('tool', 'fallback'),
          e.body ->> '$.data.called')
  AND tool NOT IN (SELECT value FROM json_each(:sized))
GROUP BY t.owner, t.plan_name, said, tool, e.type, hour, ms;

-- name: gather_sized
-- The same calls of the other tools, each with its intent.
SELECT t.owner, t.plan_name, iif(instr(e.step, '['), substr(e.step, 1, instr(e.step, '[') - 1), e.step) AS said,
       s.body ->> '$.data.tool' AS tool, e.type, e.at / 3600000 AS hour, max(0, e.at - s.at) AS ms, s.body
FROM events e
CROSS JOIN tasks t ON t.num = e.task
CROSS JOIN events s ON s.id = (SELECT i.id FROM events i
                               WHERE i.task = e.task AND i.seq < e.seq AND i.type = 'attempt.started' AND i.step = e.step
                               ORDER BY i.seq DESC LIMIT 1)
WHERE e.id > :after AND e.id <= :upto
  AND e.type IN ('step.completed', 'attempt.failed', 'attempt.timed_out', 'attempt.killed', 'attempt.abandoned')
  AND iif(e.type = 'step.completed',
          e.body ->> '$.data.attempt' IS NOT NULL AND e.body ->> '$.data.via' IN ('tool', 'fallback'),
          e.body ->> '$.data.called')
  AND tool IN (SELECT value FROM json_each(:sized));

-- name: gather_retries
-- Retries that count, and how long each was to wait.
SELECT t.owner, t.plan_name, iif(instr(e.step, '['), substr(e.step, 1, instr(e.step, '[') - 1), e.step) AS said,
       s.body ->> '$.data.tool' AS tool, e.at / 3600000 AS hour,
       max(0, CAST(round((julianday(e.body ->> '$.data.retry.next_at') - 2440587.5) * 86400000) AS INTEGER) - e.at) AS ms,
       s.body
FROM events e
CROSS JOIN tasks t ON t.num = e.task
CROSS JOIN events s ON s.id = (SELECT i.id FROM events i
                               WHERE i.task = e.task AND i.seq < e.seq AND i.type = 'attempt.started' AND i.step = e.step
                               ORDER BY i.seq DESC LIMIT 1)
WHERE e.id > :after AND e.id <= :upto AND e.type = 'step.retry_scheduled' AND e.body ->> '$.data.counted';

-- name: gather_tasks
-- Tasks that ended, and those that began for the first time: how long they took, or waited.
SELECT t.owner, t.plan_name, e.type, e.body ->> '$.data.outcome' AS outcome, e.at / 3600000 AS hour,
       CASE e.type
           WHEN 'task.started' THEN max(0, e.at - t.created_at)
           WHEN 'task.cancelled' THEN max(0, e.at - coalesce(t.started_at, t.created_at))
           ELSE CAST(round((e.body ->> '$.data.duration_s') * 1000) AS INTEGER)
       END AS ms,
       count(*)
FROM events e
CROSS JOIN tasks t ON t.num = e.task
WHERE e.id > :after AND e.id <= :upto
  AND (e.type IN ('task.completed', 'task.failed', 'task.cancelled') OR (e.type = 'task.started' AND e.seq = 2))
GROUP BY t.owner, t.plan_name, e.type, outcome, hour, ms;

-- name: gather_pauses
-- Questions about steps that were answered, or ran out: how, and how long they were open.
SELECT t.owner, t.plan_name, iif(instr(p.step, '['), substr(p.step, 1, instr(p.step, '[') - 1), p.step),
       p.type, e.body ->> '$.data.answer', e.at / 3600000, max(0, e.at - p.opened_at)
FROM events e
CROSS JOIN pauses p ON p.id = e.body ->> '$.data.pause'
CROSS JOIN tasks t ON t.num = e.task
WHERE e.id > :after AND e.id <= :upto AND e.type IN ('pause.answered', 'pause.expired') AND p.step IS NOT NULL;

-- name: recent_calls
-- Those that succeeded, among the last events.
SELECT t.owner, t.plan_name, iif(instr(e.step, '['), substr(e.step, 1, instr(e.step, '[') - 1), e.step),
       e.body ->> '$.data.tool_used', max(0, e.at - s.at)
FROM events e
CROSS JOIN tasks t ON t.num = e.task
CROSS JOIN events s ON s.id = (SELECT i.id FROM events i
                               WHERE i.task = e.task AND i.seq < e.seq AND i.type = 'attempt.started' AND i.step = e.step
                               ORDER BY i.seq DESC LIMIT 1)
WHERE e.id > (SELECT max(id) FROM events) - :limit AND e.type = 'step.completed'
  AND e.body ->> '$.data.attempt' IS NOT NULL AND e.body ->> '$.data.via' IN ('tool', 'fallback')
ORDER BY e.id;

-- name: note_handle
-- Null deletes.
UPDATE handles SET notes = json_patch(notes, ?) WHERE id = ?;

-- name: find_ended
-- Only what has ended and is held by nobody goes, and only its owner's.
SELECT num FROM tasks WHERE id = ? AND owner = ? AND ended_at IS NOT NULL AND worker IS NULL;

-- name: delete_events
-- But the newest line of all, whose number must not be given again: whoever reads on from it would miss what follows.
DELETE FROM events WHERE task IN (0, :task) AND id < (SELECT max(id) FROM events);

-- name: keep_newest_number
-- That line tells nothing any more, and belongs to nobody.
UPDATE events SET task = 0, seq = id, at = 0, type = '', step = NULL, body = '{}', hash = NULL WHERE task = :task;

-- name: empty_store
-- What an unfinished move has left.
DELETE FROM listeners;
DELETE FROM tasks;
DELETE FROM events;
DELETE FROM pauses;
DELETE FROM rates;
DELETE FROM quotas;
DELETE FROM breakers;
DELETE FROM credentials;
DELETE FROM history;
DELETE FROM signals;
DELETE FROM handles;
DELETE FROM progress;
DELETE FROM checkpoints;
DELETE FROM spent_keys;
DELETE FROM begun;

-- name: fill_tasks
-- A task that was moved here.
INSERT INTO tasks (num, id, owner, key, plan_name, plan_digest, inputs_digest, title, priority, steps, status,
        generation, epoch, worker, last_seq, recoveries, done, due_at, created_at, updated_at, started_at, ended_at,
        outcome, error_code, labels, tools, parent)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: fill_events
-- Its journal, with its places.
INSERT INTO events (id, task, seq, at, type, step, body, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: fill_pauses
-- Its questions.
INSERT INTO pauses (id, task, step, type, status, opened_at, due_at, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: fill_rates
-- When next calls may come.
INSERT INTO rates (name, arrival)
VALUES (?, ?);

-- name: fill_quotas
-- What was used of a day.
INSERT INTO quotas (name, day, used)
VALUES (?, ?, ?);

-- name: fill_breakers
-- Troubled ones.
INSERT INTO breakers (id, owner, state, updated_at, body)
VALUES (?, ?, ?, ?, ?);

-- name: fill_credentials
-- Digests only.
INSERT INTO credentials (id, kind, hash, name, owner, actor_kind, actor_id, scopes, created_at, expires_at,
        last_used_at, parent, path)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: fill_history
-- Sketches.
INSERT INTO history (bucket, owner, kind, name, outcome, size, plan, step, sketch, n, total_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: fill_signals
-- Heard or not.
INSERT INTO signals (num, owner, id, event, key, at, heard, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: fill_listeners
-- Who waits for one.
INSERT INTO listeners (task, step, attempt, owner, event, key, any_key, signal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: fill_handles
-- Names of clients.
INSERT INTO handles (id, owner, task, generation, ttl_ms, created_at, notes)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: fill_progress
-- What was told.
INSERT INTO progress (task, generation, share)
VALUES (?, ?, ?);

-- name: fill_checkpoints
-- How far steps have come.
INSERT INTO checkpoints (task, step, attempt, tool, input, body)
VALUES (?, ?, ?, ?, ?, ?);

-- name: fill_spent_keys
-- Of tasks that are no more.
INSERT INTO spent_keys (owner, key, until)
VALUES (?, ?, ?);

-- name: fill_begun
-- Which calls have begun.
INSERT INTO begun (task, step, attempt) VALUES (?, ?, ?);

-- name: fill_meta
-- What holds wherever the store is.
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: keep_place
-- Places go on behind those that were given where the store came from.
INSERT INTO events (id, task, seq, at, type, step, body, hash)
SELECT :place, 0, :place, 0, '', NULL, '{}', NULL WHERE :place > (SELECT coalesce(max(id), 0) FROM events);
