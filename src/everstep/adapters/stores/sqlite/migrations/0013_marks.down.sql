-- Steps that were under way start over, and progress may be told anew.

DROP TABLE progress;
DROP TABLE checkpoints;

PRAGMA user_version = 12;
