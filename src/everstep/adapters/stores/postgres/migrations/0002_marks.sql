-- Marks: how far a task was said to be, in ten-thousandths, and how far the calls of a step have come.

CREATE TABLE progress (
    task       text COLLATE "C" PRIMARY KEY,
    generation bigint NOT NULL,
    share      bigint NOT NULL
);

CREATE TABLE checkpoints (
    task    text COLLATE "C" NOT NULL,
    step    text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    tool    text NOT NULL,
    input   text NOT NULL,
    body    text NOT NULL,
    PRIMARY KEY (task, step)
);
