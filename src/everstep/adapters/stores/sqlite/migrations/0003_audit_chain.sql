-- Every line of a journal carries a hash of itself and of the line before it, so that a changed one shows.
-- Lines that are older have none; the last of them stands in `meta`.

ALTER TABLE events ADD COLUMN hash BLOB;
INSERT INTO meta (key, value) SELECT 'linked_after', coalesce(max(id), 0) FROM events;

PRAGMA user_version = 3;
