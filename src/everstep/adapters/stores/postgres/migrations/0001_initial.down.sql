DROP TABLE migrations, workers, batches, turns, tasks, events, payloads, pauses, rates, quotas, breakers, credentials,
           history, signals, listeners, handles, spent_keys;
DROP SEQUENCE task_numbers, places;
DROP FUNCTION told(text, text[]);
DELETE FROM meta WHERE key = 'linked_after';
