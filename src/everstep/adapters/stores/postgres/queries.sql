-- Statements that only PostgreSQL understands, or that mean what is meant only here; the others are in `../sql/queries.sql`.
-- Every connection may be another one than a moment ago (pgbouncer): nothing outlives its transaction.

-- name: begin
-- One message: the transaction, its patience, its mark (who lost the answer to COMMIT finds it, or does not), a sign for
-- whoever reads all journals as one line (`upto`), and what its units need to know: whether everything is halted.
BEGIN;
SET LOCAL statement_timeout = '10s';
SET LOCAL lock_timeout = '2s';
SET LOCAL idle_in_transaction_session_timeout = %(idle)s;
UPDATE batches SET number = %(number)s WHERE worker = %(worker)s;
SELECT pg_advisory_xact_lock_shared(('batches'::regclass::oid::bigint & 2147483647)::int, (last_value & 2147483647)::int)
FROM places;
SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'halt'), EXISTS (SELECT 1 FROM batches WHERE worker = %(worker)s);

-- name: open_batch
-- The same in the one message that holds the whole batch: whoever lost its answer has taken the number if it is too late
-- for it (`settle_batch`), and a batch that would find everything halted is written in another way.
SELECT set_config('statement_timeout', '10s', true), set_config('lock_timeout', '2s', true),
       set_config('idle_in_transaction_session_timeout', %(idle)s, true),
       pg_advisory_xact_lock_shared(('batches'::regclass::oid::bigint & 2147483647)::int, (last_value & 2147483647)::int),
       1 / (NOT EXISTS (SELECT 1 FROM meta WHERE key = 'halt'))::int
FROM places;

-- name: mark_batch
-- Fails if the number was taken.
WITH marked AS (UPDATE batches SET number = %(number)s WHERE worker = %(worker)s AND abs(number) < %(number)s RETURNING 1)
SELECT 1 / count(*) FROM marked;

-- name: start
-- What `open_batch` goes on with.
BEGIN;

-- name: commit
-- One flush.
COMMIT;

-- name: rollback
-- As if nothing had been.
ROLLBACK;

-- name: find_batch
-- Waits until the transaction that may have written it is over.
SELECT number FROM batches WHERE worker = %s FOR UPDATE;

-- name: settle_batch
-- A batch of this number that is not here by now comes too late. That it is not stays to be seen: its number is negative.
UPDATE batches SET number = -%(number)s::bigint WHERE worker = %(worker)s AND number <> %(number)s;

-- name: insert_batch
-- There before the first commit, so that whoever looks for it waits.
INSERT INTO batches (worker, number) VALUES (%s, 0);

-- name: forget_batches
-- Of workers that are gone.
DELETE FROM batches WHERE worker NOT IN (SELECT id FROM workers);

-- name: begin_reading
-- A question has its patience too.
BEGIN READ ONLY;
SET LOCAL statement_timeout = %(patience)s;

-- name: begin_telling
-- So has a hint.
BEGIN;
SET LOCAL statement_timeout = %(patience)s;

-- name: end_reading
-- Nothing was written.
COMMIT;

-- name: in_turn
-- A row lock, whether there was a row or not.
INSERT INTO turns (name) VALUES (%s) ON CONFLICT (name) DO UPDATE SET name = excluded.name;

-- name: insert_events
-- Many lines at once.
INSERT INTO events (task, seq, at, type, step, body, hash)
SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::text[], %b::text[], %b::text[], %b::bytea[]);

-- name: insert_tasks
-- Many tasks that begin where they are created.
INSERT INTO tasks (num, id, owner, key, plan_name, plan_digest, inputs_digest, title, priority, steps, created_at,
                   status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code,
                   last_seq, updated_at, epoch, worker, labels, tools, parent)
SELECT * FROM unnest(%b::bigint[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[],
                     %b::bigint[], %b::bigint[], %b::bigint[], %b::text[], %b::bigint[], %b::bigint[], %b::bigint[],
                     %b::bigint[], %b::bigint[], %b::bigint[], %b::text[], %b::text[], %b::bigint[], %b::bigint[],
                     %b::bigint[], %b::text[], %b::text[], %b::text[], %b::text[]);

-- name: touch_tasks
-- Many holders' writes that change nothing but progress, which is nearly always. A guard that does not hold fails it.
WITH changed AS (
    UPDATE tasks t SET recoveries = n.recoveries, done = n.done, last_seq = n.last_seq, updated_at = n.updated_at
    FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::text[],
                %b::bigint[])
      AS n (recoveries, done, last_seq, updated_at, num, epoch, worker, old_last_seq)
    WHERE t.num = n.num AND t.epoch = n.epoch AND t.worker = n.worker AND t.last_seq = n.old_last_seq
    RETURNING 1)
SELECT 1 / (count(*) = %s)::int FROM changed;

-- name: update_tasks
-- Many holders' writes at once. Those that give up their lease do so here.
WITH changed AS (
    UPDATE tasks t
    SET status = n.status, generation = n.generation, recoveries = n.recoveries, done = n.done, due_at = n.due_at,
        started_at = n.started_at, ended_at = n.ended_at, outcome = n.outcome, error_code = n.error_code,
        last_seq = n.last_seq, updated_at = n.updated_at, worker = CASE WHEN n.released THEN NULL ELSE t.worker END
    FROM unnest(%b::text[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[],
                %b::text[], %b::text[], %b::bigint[], %b::bigint[], %b::bigint[], %b::text[], %b::bigint[], %b::text[],
                %b::bigint[], %b::boolean[])
      AS n (status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, last_seq, updated_at,
            num, old_status, epoch, worker, old_last_seq, released)
    WHERE t.num = n.num AND t.status = n.old_status AND t.epoch = n.epoch AND t.worker = n.worker
      AND t.last_seq = n.old_last_seq
    RETURNING 1)
SELECT 1 / (count(*) = %s)::int FROM changed;

-- name: claim_task
-- Leases: the epochs rise, the worker is written down. How many rows come back confirms the guards.
UPDATE tasks t
SET status = n.status, epoch = t.epoch + 1, worker = n.worker, last_seq = t.last_seq + 1, updated_at = n.at,
    started_at = coalesce(t.started_at, n.started_at)
FROM unnest(%b::text[], %b::text[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[])
  AS n (status, worker, at, started_at, num, epoch, last_seq)
WHERE t.num = n.num AND t.epoch = n.epoch AND t.worker IS NULL AND t.last_seq = n.last_seq;

-- name: withdraw_all_pauses
-- These tasks have ended: nobody is asked any more.
UPDATE pauses SET status = 'withdrawn' WHERE task = ANY (%b::bigint[]) AND status = 'open';

-- name: admit_all
-- So many more tasks of an owner, counted while nobody else adds to them; fails if they are too many.
SELECT 1 / (count(*) + %s <= %s)::int FROM tasks WHERE owner = %s AND ended_at IS NULL;

-- name: find_guards
-- What stands of many tasks; the write itself compares again.
SELECT id, num, status, generation, epoch, worker, last_seq,
       (SELECT hash FROM events e WHERE e.task = tasks.num AND e.seq = tasks.last_seq)
FROM tasks WHERE id = ANY (%s::text[]);

-- name: task_numbers
-- Some at once; gaps do no harm.
SELECT nextval('task_numbers') FROM generate_series(1, 64);

-- name: push_rate
-- The provider wants to be left alone until then.
INSERT INTO rates (name, arrival) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET arrival = greatest(rates.arrival, excluded.arrival);

-- name: find_guard
-- What a write must find unchanged, from now on unchanged by others. A head that is missing was written as we waited.
SELECT num, status, generation, epoch, worker, last_seq,
       (SELECT hash FROM events e WHERE e.task = tasks.num AND e.seq = tasks.last_seq)
FROM tasks WHERE id = %s FOR UPDATE;

-- name: find_free_guard
-- The same of a task that nobody else is writing.
SELECT num, status, generation, epoch, worker, last_seq,
       (SELECT hash FROM events e WHERE e.task = tasks.num AND e.seq = tasks.last_seq)
FROM tasks WHERE id = %s FOR UPDATE SKIP LOCKED;

-- name: heads_of
-- The last links of these journals.
SELECT t.num, e.hash FROM tasks t JOIN events e ON e.task = t.num AND e.seq = t.last_seq WHERE t.num = ANY (%s::bigint[]);

-- name: command_held_task
-- A command beside a holder: its figures stand, but for what the command adds to them. The holder is told where.
UPDATE tasks
SET status = %(status)s, generation = %(generation)s, ended_at = %(ended_at)s, outcome = %(outcome)s,
    error_code = %(error_code)s, last_seq = %(last_seq)s, updated_at = %(at)s, done = done + %(ends)s,
    recoveries = CASE WHEN %(outcomes)s::int <> 0 THEN 0 ELSE recoveries END, told = told + 1
WHERE num = %(num)s AND last_seq = %(old_last_seq)s;

-- name: claim_candidates
-- Of the owner who has the fewest tasks held, then by priority and age (`domain/queue`); what others look at is skipped.
WITH RECURSIVE waiting (owner) AS (
    (SELECT owner FROM tasks WHERE worker IS NULL AND status IN ('queued', 'stalled', 'cancelling') ORDER BY owner LIMIT 1)
    UNION ALL
    SELECT (SELECT t.owner FROM tasks t
            WHERE t.worker IS NULL AND t.status IN ('queued', 'stalled', 'cancelling') AND t.owner > w.owner
            ORDER BY t.owner LIMIT 1)
    FROM waiting w WHERE w.owner IS NOT NULL
),
held AS (SELECT owner, count(*) AS tasks FROM tasks WHERE worker IS NOT NULL GROUP BY owner),
ranked AS (
    SELECT c.num, c.turn, coalesce(h.tasks, 0) + row_number() OVER (PARTITION BY w.owner ORDER BY c.turn, c.num) AS rank
    FROM waiting w
    JOIN LATERAL (
        SELECT t.num, t.created_at + 300000 * t.priority AS turn FROM tasks t
        WHERE t.owner = w.owner AND t.worker IS NULL AND t.status IN ('queued', 'stalled', 'cancelling')
          AND t.id <> ALL (ARRAY(SELECT json_array_elements_text(%(passing_over)s::json)))
          AND (%(suspects)s > 0 OR t.recoveries < %(suspect_from)s)
          AND (%(tools)s::jsonb IS NULL OR t.tools::jsonb <@ %(tools)s::jsonb)
        ORDER BY t.created_at + 300000 * t.priority, t.num LIMIT %(look)s
    ) c ON true
    LEFT JOIN held h ON h.owner = w.owner
    WHERE w.owner IS NOT NULL
)
SELECT t.num, t.id, t.status, t.generation, t.epoch, t.last_seq, NULL, t.recoveries
FROM ranked r JOIN tasks t ON t.num = r.num
WHERE t.worker IS NULL AND t.status IN ('queued', 'stalled', 'cancelling')
ORDER BY r.rank, r.turn, r.num LIMIT %(most)s
FOR UPDATE OF t SKIP LOCKED;

-- name: claim_candidates_of
-- The same among named tasks only.
SELECT num, id, status, generation, epoch, last_seq, NULL, recoveries
FROM tasks
WHERE id = ANY (ARRAY(SELECT json_array_elements_text(%(ids)s::json)))
  AND worker IS NULL AND status IN ('queued', 'stalled', 'cancelling')
ORDER BY created_at + 300000 * priority, num
FOR UPDATE SKIP LOCKED;

-- name: warn_pause
-- It will run out then; the copy of the question says so too.
UPDATE pauses
SET due_at = %s,
    body = (replace(body, '\u0000', '\u0001')::jsonb || jsonb_build_object('expires_at', %s::text))::text
WHERE id = %s AND task = %s AND status = 'open';

-- name: insert_worker
-- One incarnation of one process; its name is never used twice. Its beats are kept by the clock of the database.
INSERT INTO workers (id, name, host, pid, version, tools, started_at, heartbeat_at, beaten_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint - %s);

-- name: beat_worker
-- A fenced or released incarnation never returns.
UPDATE workers
SET heartbeat_at = %(at)s, beaten_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint - %(age)s
WHERE id = %(id)s AND fenced_at IS NULL AND released_at IS NULL;

-- name: fence_workers
-- Fence first, then move their tasks: whoever was silent for so long, but never oneself.
UPDATE workers SET fenced_at = %(at)s
WHERE id <> %(me)s AND fenced_at IS NULL AND released_at IS NULL
  AND beaten_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - %(age)s;

-- name: end_silent
-- Who began to write and was frozen before all was said keeps its locks, and no timeout of the server ends it: in the
-- middle of a message it does not count as idle.
SELECT pg_terminate_backend(l.pid)
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.objsubid = 2
  AND l.classid::bigint = 'batches'::regclass::oid::bigint & 2147483647
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND a.wait_event = 'ClientRead' AND a.xact_start < clock_timestamp() - %s * interval '1 millisecond';

-- name: are_workers_silent
-- Whether there is anybody to fence; most of the time there is not, and nothing is written.
SELECT 1 FROM workers
WHERE id <> %(me)s AND fenced_at IS NULL AND released_at IS NULL
  AND beaten_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - %(age)s LIMIT 1;

-- name: load_tasks
-- Whole journals of many tasks, each in order of seq.
SELECT t.id, t.owner, e.body
FROM tasks t JOIN events e ON e.task = t.num
WHERE t.id = ANY (ARRAY(SELECT json_array_elements_text(%(ids)s::json)))
ORDER BY e.task, e.seq;

-- name: upto
-- A part of what reads all journals as one line: up to which place that line is complete. A place is taken when its task
-- is locked, so each journal is in order. A transaction that is under way shows which place was the last when it began,
-- and takes later ones; one that does not show it any more is over, and visible to the statement that follows.
SELECT set_config('everstep.upto', last_value::text, true) FROM places;
SELECT set_config('everstep.upto', min(began.place)::text, true)
FROM (SELECT current_setting('everstep.upto')::bigint AS place
      UNION ALL
      SELECT last.place - ((last.place - l.objid::bigint) & 2147483647)
      FROM (SELECT current_setting('everstep.upto')::bigint AS place) last, pg_locks l
      WHERE l.locktype = 'advisory' AND l.objsubid = 2
        AND l.classid::bigint = 'batches'::regclass::oid::bigint & 2147483647
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) began;

-- name: read_tail
-- All journals as one line, from a place on; never past a transaction that is still under way.
-- with: upto
;
SELECT e.id, t.owner, t.id, e.seq, e.type, e.step, e.body
FROM events e JOIN tasks t ON t.num = e.task
WHERE e.id > %(after)s AND (%(owner)s IS NULL OR t.owner = %(owner)s)
  AND e.id <= current_setting('everstep.upto')::bigint
ORDER BY e.id LIMIT %(limit)s;

-- name: tail_end
-- The newest event of all; never past a transaction that is still under way.
-- with: upto
;
SELECT e.id, t.owner, t.id, e.seq, e.type, e.step, e.body
FROM events e JOIN tasks t ON t.num = e.task
WHERE e.id <= current_setting('everstep.upto')::bigint
ORDER BY e.id DESC LIMIT 1;

-- name: of_tasks
-- A part of every list of tasks: which of them are asked for.
      (%(text)s IS NULL OR strpos(lower(title), %(text)s) > 0 OR strpos(id, %(text)s) > 0
       OR strpos(lower(error_code), %(text)s) > 0)
  AND (%(since)s IS NULL OR created_at >= %(since)s)
  AND (%(until)s IS NULL OR created_at < %(until)s)
  AND (%(plan_name)s IS NULL OR plan_name = %(plan_name)s)
  AND (%(statuses)s IS NULL OR status = ANY (ARRAY(SELECT json_array_elements_text(%(statuses)s::json))))
  AND (%(plan_digest)s IS NULL OR plan_digest = %(plan_digest)s)
  AND (%(inputs_digest)s IS NULL OR inputs_digest = %(inputs_digest)s)
  AND (%(parent)s IS NULL OR parent = %(parent)s)
  AND (%(tool)s IS NULL OR tools::jsonb ? %(tool)s)
  AND (%(label)s IS NULL OR labels::jsonb ->> %(label)s = %(labelled)s)
  AND (%(reason)s IS NULL
       OR EXISTS (SELECT 1 FROM pauses p WHERE p.task = tasks.num AND p.status = 'open' AND p.type = %(reason)s))
  AND (NOT %(needs_you)s
       OR EXISTS (SELECT 1 FROM pauses p
                  WHERE p.task = tasks.num AND p.status = 'open' AND p.type NOT IN ('userRequested', 'resourcePressure')
                    AND replace(p.body, '\u0000', '\u0001')::jsonb -> 'may_answer' ? 'human'))

-- name: list_tasks_changed
-- What changed last first. Time changes with every step and is in no index here: the owner's tasks are sorted.
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, num
FROM tasks
WHERE owner = %(owner)s AND (updated_at, num) < (%(at)s, %(num)s) AND
-- with: of_tasks
ORDER BY updated_at DESC, num DESC LIMIT %(limit)s;

-- name: list_some_tasks
-- Where few can be meant: children of one task, tasks with an open pause, tasks that live. These are found first.
WITH few (num) AS MATERIALIZED (
    SELECT num FROM tasks WHERE %(parent)s IS NOT NULL AND parent = %(parent)s
    UNION
    SELECT task FROM pauses WHERE %(paused)s AND status = 'open'
    UNION
    SELECT num FROM tasks WHERE %(live)s AND owner = %(owner)s AND ended_at IS NULL
)
SELECT id, owner, key, title, plan_name, plan_digest, priority, created_at, updated_at, epoch, worker, last_seq, steps,
       status, generation, recoveries, done, due_at, started_at, ended_at, outcome, error_code, tasks.num
FROM few JOIN tasks ON tasks.num = few.num
WHERE owner = %(owner)s
  AND CASE %(sort)s
          WHEN 'created_at' THEN (created_at, tasks.num) > (%(at)s, %(num)s)
          WHEN '-updated_at' THEN (updated_at, tasks.num) < (%(at)s, %(num)s)
          ELSE (created_at, tasks.num) < (%(at)s, %(num)s)
      END AND
-- with: of_tasks
ORDER BY CASE %(sort)s WHEN 'created_at' THEN created_at WHEN '-updated_at' THEN -updated_at ELSE -created_at END,
         CASE %(sort)s WHEN 'created_at' THEN tasks.num ELSE -tasks.num END
LIMIT %(limit)s;

-- name: find_task_by_prefix
-- Two are enough to know that a prefix is ambiguous; some more to name them.
SELECT id FROM tasks WHERE id >= %(name)s AND id < %(name)s || chr(1114111) AND owner = %(owner)s ORDER BY id LIMIT 10;

-- name: last_event
-- Counted while they are few; then as the database estimates.
SELECT CASE WHEN c.reltuples > 100000 THEN c.reltuples::bigint ELSE (SELECT count(*) FROM events) END
FROM pg_class c WHERE c.oid = 'events'::regclass;

-- name: file_size
-- Tables, indexes and payloads.
SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'tasks'::regclass) AND c.relkind = 'r';

-- name: find_breaker
-- As it stands, inside the transaction that asks it.
SELECT body FROM breakers WHERE id = %s;

-- name: list_errors
-- Newest first, from the partial index: ends of attempts that were called, and steps that failed without a call. Which
-- tool it was stands in the intent, or else in the plan.
SELECT found.id, found.task_id, found.called, found.body FROM (
    SELECT e.id, t.id AS task_id, e.at, e.type, e.body,
           coalesce((SELECT told(s.body, 'data', 'tool') FROM events s
                     WHERE s.task = e.task AND s.seq < e.seq AND s.type = 'attempt.started' AND s.step = e.step
                     ORDER BY s.seq DESC LIMIT 1),
                    (SELECT p.value ->> 'tool' FROM events c, json_array_elements(told(c.body, 'data', 'plan', 'steps')::json) p
                     WHERE c.task = e.task AND c.seq = 1 AND p.value ->> 'id' = e.step)) AS called
    FROM events e JOIN tasks t ON t.num = e.task
    WHERE e.type IN ('attempt.failed', 'attempt.timed_out', 'attempt.killed', 'attempt.abandoned', 'step.failed')
      AND (%(before)s IS NULL OR e.id < %(before)s)
      AND (%(since)s IS NULL OR e.at >= %(since)s)
      AND (%(owner)s IS NULL OR t.owner = %(owner)s)
      AND (%(task)s IS NULL OR t.id = %(task)s)
      AND (%(category)s IS NULL OR told(e.body, 'data', 'error', 'category') = %(category)s)
      AND (%(code)s IS NULL OR told(e.body, 'data', 'error', 'code') = %(code)s)
      AND CASE WHEN e.type = 'step.failed'
               THEN told(e.body, 'data', 'attempt') IS NULL AND told(e.body, 'data', 'error', 'attempt') IS NULL
               ELSE told(e.body, 'data', 'called') = 'true'
                    AND told(e.body, 'data', 'error', 'code') NOT IN ('needs_input', 'not_called') END
) found
WHERE %(tool)s IS NULL OR found.called = %(tool)s
ORDER BY found.id DESC LIMIT %(limit)s;

-- name: gather_upto
-- The end of the next part of the journal to be gathered; never past a transaction that is still under way.
-- with: upto
;
SELECT coalesce(max(part.id), %(after)s) FROM (
    SELECT id FROM events
    WHERE id > %(after)s AND id <= current_setting('everstep.upto')::bigint
    ORDER BY id LIMIT %(limit)s) part;

-- name: gather_calls
-- Calls that ended, alike ones counted; times from intent to outcome, so that those of a plain task add up. Tools whose
-- calls differ in size are left to `gather_sized`.
SELECT t.owner, t.plan_name, split_part(e.step, '[', 1), told(s.body, 'data', 'tool'), e.type, e.at / 3600000,
       greatest(0, e.at - s.at), count(*)
FROM events e
JOIN tasks t ON t.num = e.task
JOIN LATERAL (SELECT i.at, i.body FROM events i
              WHERE i.task = e.task AND i.seq < e.seq AND i.type = 'attempt.started' AND i.step = e.step
              ORDER BY i.seq DESC LIMIT 1) s ON true
WHERE e.id > %(after)s AND e.id <= %(upto)s
  AND e.type IN ('step.completed', 'attempt.failed', 'attempt.timed_out', 'attempt.killed', 'attempt.abandoned')
  AND CASE WHEN e.type = 'step.completed'
           THEN told(e.body, 'data', 'attempt') IS NOT NULL AND told(e.body, 'data', 'via') IN ('tool', 'fallback')
           ELSE told(e.body, 'data', 'called') = 'true' END
  AND told(s.body, 'data', 'tool') <> ALL (ARRAY(SELECT json_array_elements_text(%(sized)s::json)))
GROUP BY 1, 2, 3, 4, 5, 6, 7;

-- name: gather_sized
-- The same calls of the other tools, each with its intent.
SELECT t.owner, t.plan_name, split_part(e.step, '[', 1), told(s.body, 'data', 'tool'), e.type, e.at / 3600000,
       greatest(0, e.at - s.at), s.body
FROM events e
JOIN tasks t ON t.num = e.task
JOIN LATERAL (SELECT i.at, i.body FROM events i
              WHERE i.task = e.task AND i.seq < e.seq AND i.type = 'attempt.started' AND i.step = e.step
              ORDER BY i.seq DESC LIMIT 1) s ON true
WHERE e.id > %(after)s AND e.id <= %(upto)s
  AND e.type IN ('step.completed', 'attempt.failed', 'attempt.timed_out', 'attempt.killed', 'attempt.abandoned')
  AND CASE WHEN e.type = 'step.completed'
           THEN told(e.body, 'data', 'attempt') IS NOT NULL AND told(e.body, 'data', 'via') IN ('tool', 'fallback')
           ELSE told(e.body, 'data', 'called') = 'true' END
  AND told(s.body, 'data', 'tool') = ANY (ARRAY(SELECT json_array_elements_text(%(sized)s::json)));

-- name: gather_retries
-- Retries that count, and how long each was to wait.
SELECT t.owner, t.plan_name, split_part(e.step, '[', 1), told(s.body, 'data', 'tool'), e.at / 3600000,
       greatest(0, round(extract(epoch FROM told(e.body, 'data', 'retry', 'next_at')::timestamptz) * 1000)::bigint - e.at),
       s.body
FROM events e
JOIN tasks t ON t.num = e.task
JOIN LATERAL (SELECT i.body FROM events i
              WHERE i.task = e.task AND i.seq < e.seq AND i.type = 'attempt.started' AND i.step = e.step
              ORDER BY i.seq DESC LIMIT 1) s ON true
WHERE e.id > %(after)s AND e.id <= %(upto)s AND e.type = 'step.retry_scheduled'
  AND told(e.body, 'data', 'counted') = 'true';

-- name: gather_tasks
-- Tasks that ended, and those that began for the first time: how long they took, or waited.
SELECT t.owner, t.plan_name, e.type, told(e.body, 'data', 'outcome'), e.at / 3600000,
       CASE e.type
           WHEN 'task.started' THEN greatest(0, e.at - t.created_at)
           WHEN 'task.cancelled' THEN greatest(0, e.at - coalesce(t.started_at, t.created_at))
           ELSE round(told(e.body, 'data', 'duration_s')::numeric * 1000)::bigint
       END,
       count(*)
FROM events e
JOIN tasks t ON t.num = e.task
WHERE e.id > %(after)s AND e.id <= %(upto)s
  AND (e.type IN ('task.completed', 'task.failed', 'task.cancelled') OR (e.type = 'task.started' AND e.seq = 2))
GROUP BY 1, 2, 3, 4, 5, 6;

-- name: gather_pauses
-- Questions about steps that were answered, or ran out: how, and how long they were open.
SELECT t.owner, t.plan_name, split_part(p.step, '[', 1), p.type, told(e.body, 'data', 'answer'),
       e.at / 3600000, greatest(0, e.at - p.opened_at)
FROM events e
JOIN pauses p ON p.id = told(e.body, 'data', 'pause')
JOIN tasks t ON t.num = e.task
WHERE e.id > %(after)s AND e.id <= %(upto)s AND e.type IN ('pause.answered', 'pause.expired') AND p.step IS NOT NULL;

-- name: recent_calls
-- Those that succeeded, among the last events.
SELECT t.owner, t.plan_name, split_part(e.step, '[', 1), told(e.body, 'data', 'tool_used'), greatest(0, e.at - s.at)
FROM (SELECT * FROM events ORDER BY id DESC LIMIT %(limit)s) e
JOIN tasks t ON t.num = e.task
JOIN LATERAL (SELECT i.at FROM events i
              WHERE i.task = e.task AND i.seq < e.seq AND i.type = 'attempt.started' AND i.step = e.step
              ORDER BY i.seq DESC LIMIT 1) s ON true
WHERE e.type = 'step.completed'
  AND told(e.body, 'data', 'attempt') IS NOT NULL AND told(e.body, 'data', 'via') IN ('tool', 'fallback')
ORDER BY e.id;

-- name: note_handle
-- Null deletes.
UPDATE handles
SET notes = (SELECT coalesce(jsonb_object_agg(n.key, n.value), '{}')::text FROM jsonb_each(notes::jsonb || %s::jsonb) n
             WHERE n.value <> 'null')
WHERE id = %s;

-- name: find_ended
-- Only what has ended and is held by nobody goes, and only its owner's.
SELECT num FROM tasks WHERE id = %s AND owner = %s AND ended_at IS NOT NULL AND worker IS NULL FOR UPDATE;

-- name: delete_events
-- A place in the order of commits is never given again, so nothing has to stay.
DELETE FROM events WHERE task = %s;

-- name: put_payload
-- Equal payloads are one row.
INSERT INTO payloads (digest, body) VALUES (%s, %s) ON CONFLICT (digest) DO UPDATE SET kept_at = excluded.kept_at;

-- name: stale_payloads
-- Those that nobody has kept since then.
SELECT digest FROM payloads WHERE kept_at < %s;

-- name: drop_payloads
-- But for those that somebody has kept again.
DELETE FROM payloads WHERE digest = ANY(%s) AND kept_at < %s;

-- name: get_payload
-- By content.
SELECT body FROM payloads WHERE digest = %s;

-- name: get_durability
-- What the server promises.
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'data_sync_retry', 'server_version_num');

-- name: is_recovering
-- A standby cannot be written.
SELECT pg_is_in_recovery();

-- name: has_store
-- Whether anything of ours is there.
SELECT to_regclass('migrations') IS NOT NULL;

-- name: make_meta
-- The row on which migrations queue up.
CREATE TABLE IF NOT EXISTS meta (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);
INSERT INTO meta (key, value) VALUES ('min_schema', '1') ON CONFLICT DO NOTHING;

-- name: lock_meta
-- One migrates, the others wait.
SELECT value FROM meta WHERE key = 'min_schema' FOR UPDATE;

-- name: list_workers
-- Who came, the newest first, what they hold and what they can call.
SELECT id, name, host, version, heartbeat_at, released_at IS NOT NULL OR fenced_at IS NOT NULL,
       (SELECT count(*) FROM tasks t WHERE t.worker = workers.id), tools
FROM workers ORDER BY started_at DESC, rowid DESC;

-- name: forget_slots
-- What was left by those who hold the task no more.
DELETE FROM slots s WHERE s.pool = %s
  AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.task AND t.worker = s.worker);

-- name: count_slots
-- How many others have one.
SELECT count(*) FROM slots WHERE pool = %s AND (task, step) <> (%s, %s);

-- name: take_slot
-- Ours from now on.
INSERT INTO slots (pool, task, step, worker) VALUES (%s, %s, %s, %s)
ON CONFLICT (pool, task, step) DO UPDATE SET worker = excluded.worker;

-- name: free_slot
-- Unless somebody else has it by now.
DELETE FROM slots WHERE pool = %s AND task = %s AND step = %s AND worker = %s;

-- name: unclaimed_tasks
-- What waits although nobody who lives has all of its tools; and which of them nobody has at all.
SELECT t.id, t.owner,
       ARRAY(SELECT n.tool FROM jsonb_array_elements_text(t.tools::jsonb) AS n (tool)
             WHERE NOT EXISTS (SELECT 1 FROM workers w WHERE w.fenced_at IS NULL AND w.released_at IS NULL
                               AND w.tools::jsonb ? n.tool)
             ORDER BY n.tool)
FROM tasks t
WHERE t.worker IS NULL AND t.status IN ('queued', 'stalled') AND t.updated_at < %s
  AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.fenced_at IS NULL AND w.released_at IS NULL
                  AND t.tools::jsonb <@ w.tools::jsonb)
ORDER BY t.updated_at, t.num LIMIT 100;

-- name: told_tasks
-- Tasks of this worker that somebody else has written or spoken of.
SELECT id, told FROM tasks WHERE worker = %s AND told > 0;

-- name: told_elsewhere
-- Tasks that no process holds, and somebody has written or spoken of.
SELECT id, told FROM tasks WHERE worker IS NOT NULL AND starts_with(worker, %s) AND told > 0;

-- name: heads_since
-- How far the journals of these tasks go.
SELECT id, last_seq FROM tasks WHERE id = ANY (%s::text[]);

-- name: tell
-- A hint for whoever holds these tasks, which is found by looking too; and for whoever listens.
UPDATE tasks SET told = told + 1 WHERE id = ANY (%(tasks)s::text[]) AND worker IS NOT NULL;
SELECT pg_notify('everstep_' || current_schema(), array_to_string(%(tasks)s::text[], ' '));

-- name: notify
-- A hint for whoever listens.
SELECT pg_notify('everstep_' || current_schema(), %s);

-- name: channel
-- What is listened to: one channel per store of a database.
SELECT 'everstep_' || current_schema();

-- name: close_store
-- Until this transaction ends nobody writes: each batch begins with its mark. What is read is as of now.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET LOCAL lock_timeout = '10s';
LOCK TABLE batches IN EXCLUSIVE MODE;

-- name: list_living
-- Who works on this store, or did so a moment ago.
SELECT name || '@' || host || ':' || pid FROM workers
WHERE fenced_at IS NULL AND released_at IS NULL
  AND beaten_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - %s
ORDER BY started_at;

-- name: leave
-- Nobody who knew this store writes here any more: without a mark there is no batch.
UPDATE workers SET fenced_at = %s WHERE fenced_at IS NULL AND released_at IS NULL;
DELETE FROM batches;

-- name: copy_payloads
-- Values by content.
SELECT digest, body FROM payloads;

-- name: last_place
-- The last that was given.
SELECT last_value FROM places;

-- name: empty_store
-- What an unfinished move has left.
TRUNCATE tasks, events, pauses, rates, quotas, breakers, credentials, history, signals, listeners, handles, progress,
         checkpoints, begun, spent_keys, payloads;

-- name: fill_tasks
-- A task that was moved here.
COPY tasks (num, id, owner, key, plan_name, plan_digest, inputs_digest, title, priority, steps, status, generation, epoch,
            worker, last_seq, recoveries, done, due_at, created_at, updated_at, started_at, ended_at, outcome, error_code,
            labels, tools, parent) FROM STDIN;

-- name: fill_events
-- Its journal, with its places.
COPY events (id, task, seq, at, type, step, body, hash) FROM STDIN;

-- name: fill_pauses
-- Its questions.
COPY pauses (id, task, step, type, status, opened_at, due_at, body) FROM STDIN;

-- name: fill_rates
-- When next calls may come.
COPY rates (name, arrival) FROM STDIN;

-- name: fill_quotas
-- What was used of a day.
COPY quotas (name, day, used) FROM STDIN;

-- name: fill_breakers
-- Troubled ones.
COPY breakers (id, owner, state, updated_at, body) FROM STDIN;

-- name: fill_credentials
-- Digests only.
COPY credentials (id, kind, hash, name, owner, actor_kind, actor_id, scopes, created_at, expires_at, last_used_at, parent,
                  path) FROM STDIN;

-- name: fill_history
-- Sketches.
COPY history (bucket, owner, kind, name, outcome, size, plan, step, sketch, n, total_ms) FROM STDIN;

-- name: fill_signals
-- Heard or not.
COPY signals (num, owner, id, event, key, at, heard, body) FROM STDIN;

-- name: fill_listeners
-- Who waits for one.
COPY listeners (task, step, attempt, owner, event, key, any_key, signal) FROM STDIN;

-- name: fill_handles
-- Names of clients.
COPY handles (id, owner, task, generation, ttl_ms, created_at, notes) FROM STDIN;

-- name: fill_progress
-- What was told.
COPY progress (task, generation, share) FROM STDIN;

-- name: fill_checkpoints
-- How far steps have come.
COPY checkpoints (task, step, attempt, tool, input, body) FROM STDIN;

-- name: fill_begun
-- Which calls have begun.
COPY begun (task, step, attempt) FROM STDIN;

-- name: fill_spent_keys
-- Of tasks that are no more.
COPY spent_keys (owner, key, until) FROM STDIN;

-- name: fill_payloads
-- Values by content.
COPY payloads (digest, body) FROM STDIN;

-- name: go_on_counting
-- Numbers go on behind those that came.
SELECT setval('places', greatest((SELECT last_value FROM places), %(place)s));
SELECT setval('task_numbers', (SELECT coalesce(max(num), 1) FROM tasks));
SELECT setval(pg_get_serial_sequence('signals', 'num'), (SELECT coalesce(max(num), 1) FROM signals));
