-- Pauses do not run out; those that did are told as withdrawn.

CREATE TABLE pauses_after AS SELECT * FROM pauses ORDER BY rowid;
DROP TABLE pauses;
CREATE TABLE pauses (
    id        TEXT PRIMARY KEY,
    task      INTEGER NOT NULL REFERENCES tasks (num),
    step      TEXT,
    type      TEXT NOT NULL,
    status    TEXT NOT NULL CHECK (status IN ('open', 'answered', 'withdrawn')),
    opened_at INTEGER NOT NULL,
    body      TEXT NOT NULL
) STRICT;

INSERT INTO pauses (id, task, step, type, status, opened_at, body)
SELECT id, task, step, type, iif(status = 'expired', 'withdrawn', status), opened_at, body
FROM pauses_after ORDER BY rowid;
DROP TABLE pauses_after;

CREATE INDEX pauses_by_task ON pauses (task);
CREATE INDEX pauses_open ON pauses (opened_at) WHERE status = 'open';

DROP VIEW task_executions;
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
                             'pause.answered', 'step.completed', 'step.failed', 'step.skipped')) AS last_seq,
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

PRAGMA user_version = 1;
