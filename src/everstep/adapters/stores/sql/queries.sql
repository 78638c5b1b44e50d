-- Statements that mean the same on every database, by name. Values are always bound, text is never put together, but that
-- a line `-- with: NAME` stands for another block. A block begins with `-- name:`; its comment says what it is for. What
-- differs stands in the `queries.sql` of its database, which also says how this spelling is read there (`statements.py`).

-- name: insert_event
-- One line of the journal; the unique index refuses a seq that is there.
INSERT INTO events (task, seq, at, type, step, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: insert_task
-- A new task, queued or begun; its first events follow in the same transaction.
INSERT INTO tasks (num, id, owner, key, plan_name, plan_digest, inputs_digest, title, priority, steps, created_at,
                   status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code,
                   last_seq, updated_at, epoch, worker, labels, tools, parent)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

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

-- name: waiting_tasks
-- What could be claimed, and since when the oldest of it waits: the sign by which one adds workers.
SELECT count(*), min(updated_at) FROM tasks WHERE worker IS NULL AND status IN ('queued', 'stalled', 'cancelling');

-- name: find_rate
-- When the next call would come if all came evenly.
SELECT arrival FROM rates WHERE name = ?;

-- name: move_rate
-- A place is taken.
INSERT INTO rates (name, arrival) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET arrival = excluded.arrival;

-- name: find_quota
-- Calls of a provider's last day.
SELECT day, used FROM quotas WHERE name = ?;

-- name: count_quota
-- One more call of today.
INSERT INTO quotas (name, day, used) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET day = excluded.day, used = excluded.used;

-- name: find_same_task
-- Whether this id, or this key of this owner, has been given before.
SELECT id, owner, plan_digest, inputs_digest FROM tasks WHERE id = ?
UNION ALL
SELECT id, owner, plan_digest, inputs_digest FROM tasks WHERE owner = ? AND key = ?
LIMIT 1;

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

-- name: command_free_task
-- A command while nobody holds the task: all figures are the command's.
UPDATE tasks
SET status = :status, generation = :generation, ended_at = :ended_at, outcome = :outcome, error_code = :error_code,
    last_seq = :last_seq, updated_at = :at, recoveries = :recoveries, done = :done, due_at = :due_at
WHERE num = :num AND last_seq = :old_last_seq AND worker IS NULL;

-- name: revise_task
-- The plan of a task was changed: it has another number of steps.
UPDATE tasks SET steps = ? WHERE num = ?;

-- name: claim_task
-- A lease: the epoch rises, the worker is written down.
UPDATE tasks
SET status = ?, epoch = epoch + 1, worker = ?, last_seq = last_seq + 1, updated_at = ?,
    started_at = coalesce(started_at, ?)
WHERE num = ? AND epoch = ? AND worker IS NULL AND last_seq = ?;

-- name: open_pause
-- Somebody is asked.
INSERT INTO pauses (id, task, step, type, status, opened_at, due_at, body) VALUES (?, ?, ?, ?, 'open', ?, ?, ?);

-- name: close_pause
-- Answered, or not asked any more.
UPDATE pauses SET status = ? WHERE id = ? AND task = ? AND status = 'open';

-- name: withdraw_pauses
-- The task ended: nobody is asked any more.
UPDATE pauses SET status = 'withdrawn' WHERE task = ? AND status = 'open';

-- name: is_pause_open
-- One answer wins: whether this one is still wanted.
SELECT 1 FROM pauses WHERE id = ? AND task = ? AND status = 'open';

-- name: release_worker
-- A planned stop: whoever comes next recovers its tasks at once.
UPDATE workers SET released_at = :at WHERE id = :id AND fenced_at IS NULL AND released_at IS NULL;

-- name: forget_workers
-- Incarnations that ended long ago and hold nothing.
DELETE FROM workers
WHERE heartbeat_at < :before AND (fenced_at IS NOT NULL OR released_at IS NOT NULL)
  AND id NOT IN (SELECT worker FROM tasks WHERE worker IS NOT NULL);

-- name: find_dead
-- Tasks held by incarnations that are fenced, released or unknown; not by holders that are no process.
SELECT t.id, t.status, t.epoch, w.id, w.name, w.host, w.pid, w.version, w.started_at, w.heartbeat_at, w.released_at
FROM tasks t INDEXED BY tasks_held LEFT JOIN workers w ON w.id = t.worker
WHERE t.worker IS NOT NULL AND t.worker != :me AND substr(t.worker, 1, 2) != 'x_'
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

-- name: read_events
-- One journal from a cursor on.
SELECT e.seq, e.type, e.step, e.body
FROM tasks t CROSS JOIN events e ON e.task = t.num
WHERE t.id = :task AND e.seq > :after
ORDER BY e.seq LIMIT :limit;

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

-- name: list_newest_pauses
-- From the end, and no further than needed.
SELECT t.id, t.owner, p.body, p.status, p.opened_at, p.due_at, t.plan_name
FROM pauses p CROSS JOIN tasks t ON t.num = p.task
WHERE (:owner IS NULL OR t.owner = :owner)
  AND (:task IS NULL OR t.id = :task)
  AND (:status IS NULL OR p.status = :status)
ORDER BY p.rowid DESC LIMIT :limit;

-- name: count_tasks
-- For health and doctor.
SELECT status, count(*) FROM tasks INDEXED BY tasks_live WHERE ended_at IS NULL GROUP BY status
UNION ALL
SELECT status, count(*) FROM tasks INDEXED BY tasks_ended WHERE ended_at IS NOT NULL GROUP BY status;

-- name: get_meta
-- A word that the store keeps about itself.
SELECT value FROM meta WHERE key = ?;

-- name: put_meta
-- Said anew, or for the first time.
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: keep_meta
-- Said once.
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING;

-- name: forget_meta
-- Not true any more.
DELETE FROM meta WHERE key = ?;

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

-- name: find_history
-- As it stands, inside the transaction that adds to it.
SELECT sketch, n, total_ms FROM history
WHERE bucket = ? AND owner = ? AND kind = ? AND name = ? AND outcome = ? AND size = ? AND plan = ? AND step = ?;

-- name: put_history
-- With what was added.
INSERT INTO history (bucket, owner, kind, name, outcome, size, plan, step, sketch, n, total_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (bucket, owner, kind, name, outcome, size, plan, step)
DO UPDATE SET sketch = excluded.sketch, n = excluded.n, total_ms = excluded.total_ms;

-- name: list_history
-- By bucket, and in each by owner.
SELECT bucket, owner, kind, name, outcome, size, plan, step, sketch, n, total_ms FROM history
WHERE bucket >= :since AND bucket <= :until
  AND (:owner IS NULL OR owner = :owner) AND (:kind IS NULL OR kind = :kind) AND (:plan IS NULL OR plan = :plan)
ORDER BY bucket, owner, kind, name;

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
INSERT INTO signals (owner, id, event, key, at, body) VALUES (?, ?, ?, ?, ?, ?) RETURNING num;

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

-- name: tell_progress
-- Never less than was told before of the same generation.
INSERT INTO progress (task, generation, share) VALUES (?, ?, ?)
ON CONFLICT (task) DO UPDATE SET generation = excluded.generation, share = excluded.share
WHERE excluded.generation > progress.generation
   OR (excluded.generation = progress.generation AND excluded.share > progress.share);

-- name: told_progress
-- How far a task was said to be.
SELECT generation, share FROM progress WHERE task = ?;

-- name: put_checkpoint
-- An attempt that was given up does not speak for the one after it.
INSERT INTO checkpoints (task, step, attempt, tool, input, body) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (task, step) DO UPDATE
SET attempt = excluded.attempt, tool = excluded.tool, input = excluded.input, body = excluded.body
WHERE excluded.attempt >= checkpoints.attempt;

-- name: find_checkpoint
-- How far a step has come, by which attempt, and with which call.
SELECT attempt, tool, input, body FROM checkpoints WHERE task = ? AND step = ?;

-- name: begin_call
-- One beginning per attempt, for whoever comes first; attempts of a step are counted up for as long as its task lives.
INSERT INTO begun (task, step, attempt) VALUES (?, ?, ?)
ON CONFLICT (task, step) DO UPDATE SET attempt = excluded.attempt WHERE excluded.attempt > begun.attempt;

-- name: naming_payloads
-- Lines that may name a value kept by its content: values that are elsewhere, handles of artifacts, and long plans.
SELECT body FROM events WHERE body LIKE '%"artifact":%' OR body LIKE '%"media_type":%' OR type = 'task.created'
UNION ALL SELECT body FROM checkpoints WHERE body LIKE '%sha256:%';

-- name: delete_progress
-- With its task.
DELETE FROM progress WHERE task = ?;

-- name: delete_checkpoints
-- With their task.
DELETE FROM checkpoints WHERE task = ?;

-- name: delete_begun
-- With their task.
DELETE FROM begun WHERE task = ?;

-- name: list_ended
-- What may go: ended one way, long ago, and held by nobody.
SELECT owner, id FROM tasks
WHERE ended_at IS NOT NULL AND status = ? AND ended_at < ? AND worker IS NULL ORDER BY ended_at, num LIMIT ?;

-- name: delete_pauses
-- Before the task to which they refer.
DELETE FROM pauses WHERE task = ?;

-- name: delete_task
-- Gone.
DELETE FROM tasks WHERE num = ? RETURNING key;

-- name: list_workers
-- Who came, the newest first, and what they hold.
SELECT id, name, host, version, heartbeat_at, released_at IS NOT NULL OR fenced_at IS NOT NULL,
       (SELECT count(*) FROM tasks t WHERE t.worker = workers.id), '[]'
FROM workers ORDER BY started_at DESC, rowid DESC;

-- name: spend_key
-- The key of a task that is no more.
INSERT INTO spent_keys (owner, key, until) VALUES (?, ?, ?)
ON CONFLICT (owner, key) DO UPDATE SET until = excluded.until;

-- name: is_key_spent
-- Whether a key is still reserved for a task that is no more.
SELECT 1 FROM spent_keys WHERE owner = ? AND key = ? AND until > ?;

-- name: is_empty
-- Whether it holds nothing that could be lost.
SELECT NOT EXISTS (SELECT 1 FROM tasks) AND NOT EXISTS (SELECT 1 FROM credentials);

-- name: last_place
-- The last in the order of all commits that was given.
SELECT coalesce(max(id), 0) FROM events;

-- name: copy_tasks
-- All of them, on their way into another store.
SELECT num, id, owner, key, plan_name, plan_digest, inputs_digest, title, priority, steps, status, generation, epoch,
       worker, last_seq, recoveries, done, due_at, created_at, updated_at, started_at, ended_at, outcome, error_code, labels,
       tools, parent
FROM tasks ORDER BY num;

-- name: copy_events
-- Every line that tells something, in the order of the commits.
SELECT id, task, seq, at, type, step, body, hash FROM events WHERE task != 0 ORDER BY id;

-- name: copy_pauses
-- Open ones and others.
SELECT id, task, step, type, status, opened_at, due_at, body FROM pauses ORDER BY opened_at, rowid;

-- name: copy_rates
-- When next calls may come.
SELECT name, arrival FROM rates;

-- name: copy_quotas
-- What was used of a day.
SELECT name, day, used FROM quotas;

-- name: copy_breakers
-- Troubled ones.
SELECT id, owner, state, updated_at, body FROM breakers;

-- name: copy_credentials
-- Digests only.
SELECT id, kind, hash, name, owner, actor_kind, actor_id, scopes, created_at, expires_at, last_used_at, parent, path
FROM credentials ORDER BY created_at, rowid;

-- name: copy_history
-- Sketches.
SELECT bucket, owner, kind, name, outcome, size, plan, step, sketch, n, total_ms FROM history;

-- name: copy_signals
-- Heard or not.
SELECT num, owner, id, event, key, at, heard, body FROM signals ORDER BY num;

-- name: copy_listeners
-- Who waits for one.
SELECT task, step, attempt, owner, event, key, any_key, signal FROM listeners;

-- name: copy_handles
-- Names of clients.
SELECT id, owner, task, generation, ttl_ms, created_at, notes FROM handles;

-- name: copy_progress
-- What was told.
SELECT task, generation, share FROM progress;

-- name: copy_checkpoints
-- How far steps have come.
SELECT task, step, attempt, tool, input, body FROM checkpoints;

-- name: copy_begun
-- Which calls have begun.
SELECT task, step, attempt FROM begun;

-- name: copy_spent_keys
-- Of tasks that are no more.
SELECT owner, key, until FROM spent_keys;

-- name: copy_meta
-- What holds wherever the store is.
SELECT key, value FROM meta WHERE key IN ('linked_after', 'gathered', 'halt');
