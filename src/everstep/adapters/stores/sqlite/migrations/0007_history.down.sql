-- Everything in it can be gathered from the journal again.

DROP TABLE history;
DELETE FROM meta WHERE key = 'gathered';

PRAGMA user_version = 6;
