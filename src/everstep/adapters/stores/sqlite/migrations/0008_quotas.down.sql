-- Today's calls are forgotten.

DROP TABLE quotas;

PRAGMA user_version = 7;
