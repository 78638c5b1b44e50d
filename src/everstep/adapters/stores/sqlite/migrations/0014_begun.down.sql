-- Only its driver keeps a call from being made twice.

DROP TABLE begun;

PRAGMA user_version = 13;
