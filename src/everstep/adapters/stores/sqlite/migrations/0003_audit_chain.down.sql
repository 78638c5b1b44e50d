-- Journals without hashes.

ALTER TABLE events DROP COLUMN hash;

PRAGMA user_version = 2;
