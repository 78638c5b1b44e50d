-- The tasks stay; what clients called them is forgotten.

DROP TABLE handles;

PRAGMA user_version = 9;
