-- Who may ask over the network.

-- Tokens, sessions, sign-in codes and tickets, by the SHA-256 of their values (`domain/access`).
CREATE TABLE credentials (
    id           TEXT PRIMARY KEY,
    kind         TEXT NOT NULL CHECK (kind IN ('token', 'session', 'code', 'ticket')),
    hash         BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    name         TEXT NOT NULL,
    owner        TEXT NOT NULL,
    actor_kind   TEXT NOT NULL CHECK (actor_kind IN ('human', 'llm', 'service')),
    actor_id     TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    parent       TEXT,
    path         TEXT
) STRICT;

PRAGMA user_version = 6;
