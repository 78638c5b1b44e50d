-- Every line of a journal carries a hash of itself and of the line before it, so that a changed one shows.
-- Lines that are older have none; when the chain began stands in `migrations`.

ALTER TABLE events ADD COLUMN hash BLOB;

PRAGMA user_version = 3;
