-- Pools are each worker's own again.

DROP TABLE slots;
