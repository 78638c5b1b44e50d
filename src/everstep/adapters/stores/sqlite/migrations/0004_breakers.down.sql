-- Breakers are forgotten: calls pass until they fail again.

DROP INDEX events_failed;
DROP TABLE breakers;

PRAGMA user_version = 3;
