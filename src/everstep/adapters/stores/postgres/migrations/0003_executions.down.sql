-- Nothing is lost: the view is derived, and a time is only there for whoever collects.

ALTER TABLE payloads DROP COLUMN kept_at;
DROP VIEW task_executions;
