-- Steps that were under way start over, and progress may be told anew.

DROP TABLE progress, checkpoints;
