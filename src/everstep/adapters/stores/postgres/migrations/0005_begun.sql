-- Calls that somebody has begun, of those that another process may be asked to make again: one beginning per attempt.

CREATE TABLE begun (
    task    text COLLATE "C" NOT NULL,
    step    text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    PRIMARY KEY (task, step)
);
