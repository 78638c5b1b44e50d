-- Only its driver keeps a call from being made twice.

DROP TABLE begun;
