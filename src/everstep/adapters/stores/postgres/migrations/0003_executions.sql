-- One row per step of a plan, pending ones included, derived from the journal; for people and their tools.
CREATE VIEW task_executions AS
WITH planned AS (
    SELECT t.num, t.id AS task_id, told(c.body, 'at') AS created_at, s.place AS step_number, s.step ->> 'id' AS step_id
    FROM tasks t
    JOIN events c ON c.task = t.num AND c.seq = 1
    CROSS JOIN LATERAL (
        SELECT one.value AS step, one.place
        FROM json_array_elements(told(c.body, 'data', 'plan', 'steps')::json) WITH ORDINALITY AS one (value, place)
        UNION ALL
        SELECT one.value, one.place + json_array_length(told(c.body, 'data', 'plan', 'steps')::json)
        FROM json_array_elements(coalesce(told(c.body, 'data', 'plan', 'finally'), '[]')::json)
            WITH ORDINALITY AS one (value, place)
    ) s
),
last AS (
    SELECT p.*,
           (SELECT max(e.seq) FROM events e
            WHERE e.task = p.num AND e.step = p.step_id
              AND e.type IN ('step.started', 'step.waiting', 'attempt.started', 'step.retry_scheduled', 'pause.opened',
                             'pause.answered', 'pause.expired', 'step.completed', 'step.failed', 'step.skipped')) AS last_seq,
           (SELECT told(e.body, 'at')
            FROM events e, json_array_elements_text(coalesce(told(e.body, 'data', 'skipped'), '[]')::json) AS k (value)
            WHERE e.task = p.num AND e.type IN ('task.cancelled', 'task.failed') AND k.value = p.step_id
            LIMIT 1) AS cut_at
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
       (SELECT told(s.body, 'at') FROM events s
        WHERE s.task = p.num AND s.step = p.step_id AND s.type IN ('step.started', 'attempt.started')
        ORDER BY s.seq LIMIT 1) AS started_at,
       CASE
           WHEN e.type IN ('step.completed', 'step.failed', 'step.skipped') THEN told(e.body, 'at')
           ELSE p.cut_at
       END AS completed_at,
       CASE
           WHEN e.type = 'step.completed'
               THEN coalesce(told(e.body, 'data', 'output', 'value'), told(e.body, 'data', 'output'))
       END AS result,
       CASE
           WHEN e.type IS DISTINCT FROM 'step.completed' THEN
               (SELECT told(s.body, 'data', 'error', 'message') FROM events s
                WHERE s.task = p.num AND s.step = p.step_id AND told(s.body, 'data', 'error') IS NOT NULL
                ORDER BY s.seq DESC LIMIT 1)
       END AS error_message,
       (SELECT count(*) FROM events s
        WHERE s.task = p.num AND s.step = p.step_id AND s.type = 'step.retry_scheduled'
          AND told(s.body, 'data', 'counted') = 'true') AS retry_count,
       p.created_at
FROM last p
LEFT JOIN events e ON e.task = p.num AND e.seq = p.last_seq;

-- When a payload was kept last: what no journal names may go, but not what is about to be named.
ALTER TABLE payloads ADD COLUMN kept_at bigint NOT NULL DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000);
