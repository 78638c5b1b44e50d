-- Journals without hashes.

ALTER TABLE events DROP COLUMN hash;
DELETE FROM meta WHERE key = 'linked_after';

PRAGMA user_version = 2;
