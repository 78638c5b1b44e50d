-- How often a provider may be called in a day.

-- One row per owner and provider: calls of its last day, counted in days since 1970 (`domain/rate`).
CREATE TABLE quotas (
    name TEXT PRIMARY KEY,
    day  INTEGER NOT NULL,
    used INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 8;
