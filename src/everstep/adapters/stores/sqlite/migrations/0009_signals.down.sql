-- What waits for a signal stays in the journal; signals that nobody has heard are gone.

DROP TABLE listeners;
DROP TABLE signals;

PRAGMA user_version = 8;
