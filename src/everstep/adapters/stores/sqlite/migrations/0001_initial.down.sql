-- Takes everything away: what was there before the first migration is an empty file.

DROP VIEW task_executions;
DROP TABLE pauses;
DROP TABLE events;
DROP TABLE tasks;
DROP TABLE workers;
DROP TABLE migrations;
DROP TABLE meta;

PRAGMA user_version = 0;
