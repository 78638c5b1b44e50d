-- Every statement of the store, by name. Values are always bound, text is never put together, but that a line
-- `-- with: NAME` stands for another block of this file. A block begins with `-- name:`; its comment says what it is for.

-- name: insert_event
-- One line of the journal; the unique index refuses a seq that is there.
INSERT INTO events (task, seq, at, type, step, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: insert_task
-- A new task, queued or begun; its first events follow in the same transaction.
INSERT INTO tasks (num, id, owner, key, plan_name, plan_digest, inputs_digest, title, priority, steps, created_at,
                   status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code,
                   last_seq, updated_at, epoch, worker, labels, tools, parent)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: last_num
-- The newest task; 0 if there is none.
SELECT coalesce(max(num), 0) FROM tasks;

-- name: count_live
-- Unfinished tasks of an owner: counted, never a counter that could drift.
SELECT count(*) FROM tasks INDEXED BY tasks_live WHERE owner = ? AND ended_at IS NULL;

-- name: rename_task
-- What a `task.updated` says; what it does not say stays.
UPDATE tasks SET title = coalesce(:title, title), priority = coalesce(:priority, priority),
    labels = coalesce(:labels, labels)
WHERE num = :num;

-- name: place_of
-- How many go before a task in the queue, itself included; nothing if it does not wait there.
SELECT count(*) FROM tasks me CROSS JOIN tasks t
WHERE me.id = ? AND me.worker IS NULL AND me.status IN ('queued', 'stalled', 'cancelling')
  AND t.worker IS NULL AND t.status IN ('queued', 'stalled', 'cancelling')
  AND (t.created_at + 300000 * t.priority, t.num) <= (me.created_at + 300000 * me.priority, me.num);

-- name: find_rate
-- When the next call would come if all came evenly.
SELECT arrival FROM rates WHERE name = ?;

-- name: move_rate
-- A place is taken.
INSERT INTO rates (name, arrival) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET arrival = excluded.arrival;

-- name: push_rate
-- The provider wants to be left alone until then.
INSERT INTO rates (name, arrival) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET arrival = max(arrival, excluded.arrival);

-- name: find_quota
-- Calls of a provider's last day.
SELECT day, used FROM quotas WHERE name = ?;

-- name: count_quota
-- One more call of today.
INSERT INTO quotas (name, day, used) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET day = excluded.day, used = excluded.used;

-- name: find_same_task
-- Whether this id, or this key of this owner, has been given before.
SELECT id, owner, plan_digest, inputs_digest FROM tasks WHERE id = ?1
UNION ALL
SELECT id, owner, plan_digest, inputs_digest FROM tasks WHERE owner = ?2 AND key = ?3
LIMIT 1;

-- name: find_guard
-- What a write must find unchanged.
SELECT num, status, generation, epoch, worker, last_seq,
       (SELECT hash FROM events e WHERE e.task = tasks.num AND e.seq = tasks.last_seq)
FROM tasks WHERE id = ?;

-- name: update_task
-- The holder's write. The worker stands; the row count confirms the guard.
UPDATE tasks
SET status = ?, generation = ?, recoveries = ?, done = ?, due_at = ?, started_at = ?, ended_at = ?, outcome = ?,
    error_code = ?, last_seq = ?, updated_at = ?
WHERE num = ? AND status = ? AND epoch = ? AND worker IS ? AND last_seq = ?;

-- name: touch_task
-- The same while nothing but the task's progress changes, which is nearly always: no index is even looked at.
UPDATE tasks SET recoveries = ?, done = ?, last_seq = ?, updated_at = ?
WHERE num = ? AND epoch = ? AND worker IS ? AND last_seq = ?;

-- name: release_task
-- The holder's last write: as above, and the lease is given up.
UPDATE tasks
SET status = ?, generation = ?, recoveries = ?, done = ?, due_at = ?, started_at = ?, ended_at = ?, outcome = ?,
    error_code = ?, last_seq = ?, updated_at = ?, worker = NULL
WHERE num = ? AND status = ? AND epoch = ? AND worker IS ? AND last_seq = ?;

-- name: sweep_task
-- A dead worker's task: as above, and its epoch ends.
UPDATE tasks
SET status = ?, generation = ?, recoveries = ?, done = ?, due_at = ?, started_at = ?, ended_at = ?, outcome = ?,
    error_code = ?, last_seq = ?, updated_at = ?, worker = NULL, epoch = epoch + 1
WHERE num = ? AND status = ? AND epoch = ? AND worker IS ? AND last_seq = ?;

-- name: command_held_task
-- A command beside a holder: its figures stand, but for what the command adds to them.
UPDATE tasks
SET status = :status, generation = :generation, ended_at = :ended_at, outcome = :outcome, error_code = :error_code,
    last_seq = :last_seq, updated_at = :at, done = done + :ends, recoveries = iif(:outcomes, 0, recoveries)
WHERE num = :num AND last_seq = :old_last_seq;

-- name: command_free_task
-- A command while nobody holds the task: all figures are the command's.
UPDATE tasks
SET status = :status, generation = :generation, ended_at = :ended_at, outcome = :outcome, error_code = :error_code,
    last_seq = :last_seq, updated_at = :at, recoveries = :recoveries, done = :done, due_at = :due_at
WHERE num = :num AND last_seq = :old_last_seq AND worker IS NULL;

-- name: revise_task
-- The plan of a task was changed: it has another number of steps.
UPDATE tasks SET steps = ? WHERE num = ?;

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

-- name: claim_task
-- A lease: the epoch rises, the worker is written down.
UPDATE tasks
SET status = ?, epoch = epoch + 1, worker = ?, last_seq = last_seq + 1, updated_at = ?,
    started_at = coalesce(started_at, ?)
WHERE num = ? AND epoch = ? AND worker IS NULL AND last_seq = ?;

-- name: open_pause
-- Somebody is asked.
INSERT INTO pauses (id, task, step, type, status, opened_at, due_at, body) VALUES (?, ?, ?, ?, 'open', ?, ?, ?);

-- name: warn_pause
-- It will run out then; the copy of the question says so too.
UPDATE pauses SET due_at = ?, body = json_set(body, '$.expires_at', ?) WHERE id = ? AND task = ? AND status = 'open';

-- name: close_pause
-- Answered, or not asked any more.
UPDATE pauses SET status = ? WHERE id = ? AND task = ? AND status = 'open';

-- name: withdraw_pauses
-- The task ended: nobody is asked any more.
UPDATE pauses SET status = 'withdrawn' WHERE task = ? AND status = 'open';

-- name: is_pause_open
-- One answer wins: whether this one is still wanted.
SELECT 1 FROM pauses WHERE id = ? AND task = ? AND status = 'open';

-- name: insert_worker
-- One incarnation of one process; its name is never used twice.
INSERT INTO workers (id, name, host, pid, version, started_at, heartbeat_at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: beat_worker
-- A fenced or released incarnation never returns.
UPDATE workers SET heartbeat_at = :at WHERE id = :id AND fenced_at IS NULL AND released_at IS NULL;

-- name: release_worker
-- A planned stop: whoever comes next recovers its tasks at once.
UPDATE workers SET released_at = :at WHERE id = :id AND fenced_at IS NULL AND released_at IS NULL;

-- name: fence_workers
-- Fence first, then move their tasks: whoever was silent since `before`, but never oneself.
UPDATE workers SET fenced_at = :at
WHERE id != :me AND fenced_at IS NULL AND released_at IS NULL AND heartbeat_at < :before;

-- name: are_workers_silent
-- Whether there is anybody to fence; most of the time there is not, and nothing is written.
SELECT 1 FROM workers
WHERE id != :me AND fenced_at IS NULL AND released_at IS NULL AND heartbeat_at < :before LIMIT 1;

-- name: forget_workers
-- Incarnations that ended long ago and hold nothing.
DELETE FROM workers
WHERE heartbeat_at < :before AND (fenced_at IS NOT NULL OR released_at IS NOT NULL)
  AND id NOT IN (SELECT worker FROM tasks WHERE worker IS NOT NULL);

-- name: last_beat
-- Of incarnations that may still be alive.
SELECT max(heartbeat_at) FROM workers WHERE fenced_at IS NULL AND released_at IS NULL;

-- name: find_dead
-- Tasks held by incarnations that are fenced, released or unknown.
SELECT t.id, t.status, t.epoch, w.id, w.name, w.host, w.pid, w.version, w.started_at, w.heartbeat_at, w.released_at
FROM tasks t INDEXED BY tasks_held LEFT JOIN workers w ON w.id = t.worker
WHERE t.worker IS NOT NULL AND t.worker != :me
  AND (w.id IS NULL OR w.fenced_at IS NOT NULL OR w.released_at IS NOT NULL)
ORDER BY t.num LIMIT :limit;

-- name: due_tasks
-- What this worker put off until now, the oldest first.
SELECT id, due_at FROM tasks INDEXED BY tasks_due
WHERE due_at IS NOT NULL AND due_at <= :at AND worker = :worker
ORDER BY due_at, num LIMIT :limit;

-- name: next_due
-- When to look again.
SELECT min(due_at) FROM tasks INDEXED BY tasks_due
WHERE due_at IS NOT NULL AND due_at > :at AND worker = :worker;

-- name: load_tasks
-- Whole journals of many tasks in one pass. The index gives each journal in order of seq, so nothing is sorted; if it
-- ever did not, the fold would refuse what comes.
SELECT t.id, t.owner, e.body
FROM json_each(:ids) AS wanted
CROSS JOIN tasks t ON t.id = wanted.value
CROSS JOIN events e INDEXED BY events_by_task ON e.task = t.num;

-- name: read_events
-- One journal from a cursor on.
SELECT e.seq, e.type, e.step, e.body
FROM tasks t CROSS JOIN events e ON e.task = t.num
WHERE t.id = :task AND e.seq > :after
ORDER BY e.seq LIMIT :limit;

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

-- name: list_tasks
-- Of one owner, newest first. The cursor of every list is the last row's (time, num).
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, num
FROM tasks INDEXED BY tasks_by_owner
WHERE owner = :owner AND (created_at, num) < (:at, :num) AND
-- with: of_tasks
ORDER BY created_at DESC, num DESC LIMIT :limit;

-- name: list_tasks_oldest
-- Of one owner, oldest first.
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, num
FROM tasks INDEXED BY tasks_by_owner
WHERE owner = :owner AND (created_at, num) > (:at, :num) AND
-- with: of_tasks
ORDER BY created_at, num LIMIT :limit;

-- name: list_tasks_of_plan
-- Of one plan, newest first.
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, num
FROM tasks INDEXED BY tasks_by_plan
WHERE owner = :owner AND plan_name = :plan_name AND (created_at, num) < (:at, :num) AND
-- with: of_tasks
ORDER BY created_at DESC, num DESC LIMIT :limit;

-- name: list_tasks_ended
-- That ended one way, newest first.
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, num
FROM tasks INDEXED BY tasks_ended
WHERE owner = :owner AND ended_at IS NOT NULL AND status = :ended AND (created_at, num) < (:at, :num) AND
-- with: of_tasks
ORDER BY created_at DESC, num DESC LIMIT :limit;

-- name: list_tasks_changed
-- What changed last first: the few that live, and those that ended by an index that is written once.
SELECT * FROM (
    SELECT * FROM (
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, num
        FROM tasks INDEXED BY tasks_live
        WHERE owner = :owner AND ended_at IS NULL AND (updated_at, num) < (:at, :num) AND
-- with: of_tasks
    )
    UNION ALL
    SELECT * FROM (
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, num
        FROM tasks INDEXED BY tasks_changed
        WHERE owner = :owner AND ended_at IS NOT NULL AND (updated_at, num) < (:at, :num) AND
-- with: of_tasks
        ORDER BY updated_at DESC, num DESC LIMIT :limit
    )
)
ORDER BY updated_at DESC, num DESC LIMIT :limit;

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

-- name: list_all_tasks
-- Of every owner, newest first; for those who keep the store.
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, num
FROM tasks
WHERE (created_at, num) < (:at, :num) AND
-- with: of_tasks
ORDER BY created_at DESC, num DESC LIMIT :limit;

-- name: find_task_by_name
-- By id or key, of this owner only.
SELECT id FROM tasks WHERE owner = :owner AND (id = :name OR key = :name);

-- name: find_task_by_prefix
-- Two are enough to know that a prefix is ambiguous; some more to name them.
SELECT id FROM tasks WHERE id >= :name AND id < :name || char(1114111) AND owner = :owner ORDER BY id LIMIT 10;

-- name: find_pause
-- One pause by its id, open or not.
SELECT t.id, t.owner, p.body, p.status, p.opened_at, p.due_at, t.plan_name
FROM pauses p JOIN tasks t ON t.num = p.task
WHERE p.id = :id
  AND (:owner IS NULL OR t.owner = :owner)
  AND (:task IS NULL OR t.id = :task)
  AND (:status IS NULL OR p.status = :status);

-- name: list_open_pauses
-- Few, however many there were: straight from the partial index.
SELECT t.id, t.owner, p.body, p.status, p.opened_at, p.due_at, t.plan_name
FROM pauses p INDEXED BY pauses_open CROSS JOIN tasks t ON t.num = p.task
WHERE p.status = 'open'
  AND (:owner IS NULL OR t.owner = :owner)
  AND (:task IS NULL OR t.id = :task)
ORDER BY p.opened_at, p.rowid LIMIT :limit;

-- name: list_timed_pauses
-- Open ones that run out, the next one first.
SELECT t.id, t.owner, p.body, p.status, p.opened_at, p.due_at, t.plan_name
FROM pauses p INDEXED BY pauses_due CROSS JOIN tasks t ON t.num = p.task
WHERE p.status = 'open' AND p.due_at IS NOT NULL
  AND (:owner IS NULL OR t.owner = :owner)
  AND (:task IS NULL OR t.id = :task)
ORDER BY p.due_at, p.rowid LIMIT :limit;

-- name: list_pauses
-- Also those that are closed; oldest first.
SELECT t.id, t.owner, p.body, p.status, p.opened_at, p.due_at, t.plan_name
FROM pauses p JOIN tasks t ON t.num = p.task
WHERE (:owner IS NULL OR t.owner = :owner)
  AND (:task IS NULL OR t.id = :task)
  AND (:status IS NULL OR p.status = :status)
ORDER BY p.opened_at, p.rowid LIMIT :limit;

-- name: count_tasks
-- For health and doctor.
SELECT status, count(*) FROM tasks INDEXED BY tasks_live WHERE ended_at IS NULL GROUP BY status
UNION ALL
SELECT status, count(*) FROM tasks INDEXED BY tasks_ended WHERE ended_at IS NOT NULL GROUP BY status;

-- name: last_event
-- Rows are only appended, so the last key counts them.
SELECT coalesce(max(id), 0) FROM events;

-- name: file_size
-- Of the database, without its WAL.
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size();

-- name: get_meta
-- A word that the store keeps about itself.
SELECT value FROM meta WHERE key = ?;

-- name: put_meta
-- Said anew, or for the first time.
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: forget_meta
-- Not true any more.
DELETE FROM meta WHERE key = ?;

-- name: held_seqs
-- How far the journals of these tasks go.
SELECT t.id, t.last_seq FROM json_each(:ids) AS wanted CROSS JOIN tasks t ON t.id = wanted.value;

-- name: task_page
-- A page of tasks in the order of their numbers, with all that must follow from their journals.
SELECT num, id, owner, key, plan_digest, title, priority, labels, created_at, updated_at, epoch, worker, last_seq, status,
       generation, recoveries, done, started_at, ended_at, outcome, error_code
FROM tasks WHERE num > :after ORDER BY num LIMIT :limit;

-- name: journal_of
-- One journal with its columns, to be held against each other.
SELECT id, seq, at, type, step, body, hash FROM events WHERE task = ? ORDER BY seq;

-- name: open_pauses_of
-- To be held against the journal.
SELECT id FROM pauses WHERE task = ? AND status = 'open';

-- name: linked_after
-- The last line of any journal that is older than the links.
SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'linked_after';

-- name: chain_heads
-- The last link of every journal.
SELECT id, (SELECT hash FROM events e WHERE e.task = tasks.num AND e.seq = tasks.last_seq) FROM tasks ORDER BY id;

-- name: stray_events
-- Lines of no task; foreign keys forbid them, a damaged file may have them.
SELECT count(*) FROM events WHERE task != 0 AND task NOT IN (SELECT num FROM tasks);

-- name: list_migrations
-- What was applied, in order.
SELECT number, name, checksum FROM migrations ORDER BY number;

-- name: insert_migration
-- In the transaction of the migration itself.
INSERT INTO migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?);

-- name: delete_migration
-- In the transaction that takes it back.
DELETE FROM migrations WHERE number = ?;

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
-- Nothing but reading.
PRAGMA busy_timeout = 5000;
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

-- name: commit
-- One flush.
COMMIT;

-- name: rollback
-- As if nothing had been.
ROLLBACK;

-- name: begin_unit
-- A unit that is refused alone does not sink its batch.
SAVEPOINT unit;

-- name: keep_unit
-- It stands.
RELEASE unit;

-- name: undo_unit
-- It does not.
ROLLBACK TO unit;
RELEASE unit;

-- name: use_rollback_journal
-- For copies: a single file, nothing beside it.
PRAGMA journal_mode = DELETE;

-- name: find_breaker
-- As it stands, inside the transaction that asks it.
SELECT body FROM breakers WHERE id = ?;

-- name: put_breaker
-- After a counted failure, and whenever its state changes.
INSERT INTO breakers (id, owner, state, updated_at, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, updated_at = excluded.updated_at, body = excluded.body;

-- name: delete_breaker
-- Closed again, without a failure to remember; or somebody has reset it.
DELETE FROM breakers WHERE id = ? AND owner = ?;

-- name: list_breakers
-- Troubled ones; the others are not kept.
SELECT body FROM breakers WHERE :owner IS NULL OR owner = :owner ORDER BY updated_at DESC, id;

-- name: is_worker_live
-- Whether a permit still has its worker.
SELECT 1 FROM workers WHERE id = ? AND fenced_at IS NULL AND released_at IS NULL;

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

-- name: insert_credential
-- Known by the digest of its value.
INSERT INTO credentials (id, kind, hash, name, owner, actor_kind, actor_id, scopes, created_at, expires_at, last_used_at,
                         parent, path)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: find_credential
-- Straight from the unique index.
SELECT id, kind, hash, name, owner, actor_kind, actor_id, scopes, created_at, expires_at, last_used_at, parent, path
FROM credentials WHERE hash = ?;

-- name: take_credential
-- Good once.
DELETE FROM credentials WHERE hash = ? AND kind = ?
RETURNING id, kind, hash, name, owner, actor_kind, actor_id, scopes, created_at, expires_at, last_used_at, parent, path;

-- name: list_credentials
-- What requests are made with; codes and tickets are gone in minutes.
SELECT id, kind, hash, name, owner, actor_kind, actor_id, scopes, created_at, expires_at, last_used_at, parent, path
FROM credentials WHERE kind IN ('token', 'session') ORDER BY created_at, rowid;

-- name: change_credential
-- With what was made with it.
UPDATE credentials SET scopes = ? WHERE id = ? OR parent = ? RETURNING id;

-- name: revoke_credential
-- With what was made with it.
DELETE FROM credentials WHERE id = ? OR parent = ? RETURNING id;

-- name: use_credential
-- When it was used last, to the minute.
UPDATE credentials SET last_used_at = ? WHERE id = ?;

-- name: forget_credentials
-- They are not good for anything any more.
DELETE FROM credentials WHERE expires_at < ?;

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
-- Questions about steps that were answered, or ran out: how long they were open.
SELECT t.owner, t.plan_name, iif(instr(p.step, '['), substr(p.step, 1, instr(p.step, '[') - 1), p.step),
       p.type, e.at / 3600000, max(0, e.at - p.opened_at)
FROM events e
CROSS JOIN pauses p ON p.id = e.body ->> '$.data.pause'
CROSS JOIN tasks t ON t.num = e.task
WHERE e.id > :after AND e.id <= :upto AND e.type IN ('pause.answered', 'pause.expired') AND p.step IS NOT NULL;

-- name: find_history
-- As it stands, inside the transaction that adds to it.
SELECT sketch, n, total_ms FROM history
WHERE bucket = ? AND owner = ? AND kind = ? AND name = ? AND outcome = ? AND size = ? AND plan = ? AND step = ?;

-- name: put_history
-- With what was added.
INSERT INTO history (bucket, owner, kind, name, outcome, size, plan, step, sketch, n, total_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET sketch = excluded.sketch, n = excluded.n, total_ms = excluded.total_ms;

-- name: list_history
-- By bucket, and in each by owner.
SELECT bucket, owner, kind, name, outcome, size, plan, step, sketch, n, total_ms FROM history
WHERE bucket >= :since AND bucket <= :until
  AND (:owner IS NULL OR owner = :owner) AND (:kind IS NULL OR kind = :kind) AND (:plan IS NULL OR plan = :plan)
ORDER BY bucket, owner, kind, name;

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

-- name: count_tasks_of
-- For figures of one owner.
SELECT status, count(*) FROM tasks WHERE owner = :owner AND (:plan IS NULL OR plan_name = :plan) GROUP BY status;

-- name: forget_history
-- Hours that are too old; standing rows stay.
DELETE FROM history WHERE bucket > 0 AND bucket < :before;

-- name: forget_signals
-- Too old for anybody who begins to listen now.
DELETE FROM signals WHERE at < ? AND NOT EXISTS (SELECT 1 FROM listeners l WHERE l.signal = signals.num);

-- name: find_signal
-- The same id is the same signal.
SELECT heard FROM signals WHERE owner = ? AND id = ?;

-- name: insert_signal
-- What the outside world says, kept until it is heard.
INSERT INTO signals (owner, id, event, key, at, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: call_listeners
-- Everybody who listens when it comes.
UPDATE listeners SET signal = :signal
WHERE owner = :owner AND event = :event AND signal IS NULL AND (key = :key OR (:key IS NULL AND any_key))
RETURNING task, step, attempt, owner, event, key, any_key;

-- name: insert_listener
-- Looking again changes nothing.
INSERT INTO listeners (task, step, attempt, owner, event, key, any_key) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: give_signal
-- The oldest one that nobody has heard, and that is meant for nobody else.
UPDATE listeners SET signal = (
    SELECT s.num FROM signals s
    WHERE s.owner = listeners.owner AND s.event = listeners.event AND s.heard = 0 AND s.at >= :since
      AND (s.key = listeners.key OR (s.key IS NULL AND listeners.any_key))
      AND NOT EXISTS (SELECT 1 FROM listeners other WHERE other.signal = s.num)
    ORDER BY s.num LIMIT 1)
WHERE task = :task AND step = :step AND attempt = :attempt AND signal IS NULL;

-- name: signal_for
-- What this attempt was called with, if it was.
SELECT s.body FROM listeners l JOIN signals s ON s.num = l.signal WHERE l.task = ? AND l.step = ? AND l.attempt = ?;

-- name: count_heard
-- One more has heard it.
UPDATE signals SET heard = heard + 1
WHERE num = (SELECT signal FROM listeners WHERE task = ? AND step = ? AND attempt = ?);

-- name: delete_listener
-- It waits no more.
DELETE FROM listeners WHERE task = ? AND step = ? AND attempt = ?;

-- name: put_handle
-- Once per generation of a task.
INSERT INTO handles (id, owner, task, generation, ttl_ms, created_at, notes) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: handle_of_task
-- What a generation of a task is called.
SELECT id, owner, task, generation, ttl_ms, created_at, notes FROM handles WHERE task = ? AND generation = ?;

-- name: find_handle
-- What a name stands for.
SELECT id, owner, task, generation, ttl_ms, created_at, notes FROM handles WHERE id = ?;

-- name: note_handle
-- Null deletes.
UPDATE handles SET notes = json_patch(notes, ?) WHERE id = ?;

-- name: find_ended
-- Only what has ended and is held by nobody goes, and only its owner's.
SELECT num FROM tasks WHERE id = ? AND owner = ? AND ended_at IS NOT NULL AND worker IS NULL;

-- name: delete_pauses
-- Before the task to which they refer.
DELETE FROM pauses WHERE task = ?;

-- name: delete_events
-- But the newest line of all, whose number must not be given again: whoever reads on from it would miss what follows.
DELETE FROM events WHERE task IN (0, :task) AND id < (SELECT max(id) FROM events);

-- name: keep_newest_number
-- That line tells nothing any more, and belongs to nobody.
UPDATE events SET task = 0, seq = id, at = 0, type = '', step = NULL, body = '{}', hash = NULL WHERE task = :task;

-- name: delete_task
-- Gone.
DELETE FROM tasks WHERE num = ? RETURNING key;

-- name: list_workers
-- Who came, the newest first, and what they hold.
SELECT id, name, host, version, heartbeat_at, released_at IS NOT NULL OR fenced_at IS NOT NULL,
       (SELECT count(*) FROM tasks t WHERE t.worker = workers.id)
FROM workers ORDER BY started_at DESC, rowid DESC;

-- name: spend_key
-- The key of a task that is no more.
INSERT INTO spent_keys (owner, key, until) VALUES (?, ?, ?)
ON CONFLICT (owner, key) DO UPDATE SET until = excluded.until;

-- name: is_key_spent
-- Whether a key is still reserved for a task that is no more.
SELECT 1 FROM spent_keys WHERE owner = ? AND key = ? AND until > ?;
