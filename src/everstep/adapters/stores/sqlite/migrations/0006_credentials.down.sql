-- Every token is forgotten.

DROP TABLE credentials;

PRAGMA user_version = 5;
